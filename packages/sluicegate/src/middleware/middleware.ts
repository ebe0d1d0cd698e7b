import { type Awaitable, answersOf, chained, isPromise } from '../awaitable.js'
import { afterHeld, afterUnheld, preciseClock } from '../clock.js'
import { bindsMore, strictestOf } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import { PolicyError } from '../errors.js'
import type { HeaderPair } from '../headers/header-pair.js'
import { HeaderWriter } from '../headers/header-writer.js'
import type { After } from '../kept-permit.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { Key } from '../limiter.js'
import { onceInProcess } from '../once-in-process.js'
import { afterDelay, type Delay } from '../slow-down.js'
import { type Denial, type DenialKind, denialOf } from './denial.js'
import { type BodyMaker, bodyMaker, bodyOf, checkedChange, statusesOf } from './denial-response.js'
import type { LimitRule, Weighed, Weigher } from './limit.js'
import { Asked } from './limit-result.js'
import { limitRules, readersOf, type Surroundings } from './limits.js'
import type { GatekeeperOptions } from './middleware-options.js'
import { MisuseWatch, type ReceivedFacts } from './misuse-watch.js'
import { countsOf, type Settle, settleOf } from './settle.js'
import { longestDelay, type Question, SeveralTakes } from './several-limits.js'

/** The request goes on. */
export interface Pass {
  readonly passes: true
  /** For the response, whatever it will be. */
  readonly headers: readonly HeaderPair[]
  /** The strictest of the limits; undefined where none was asked. */
  readonly decision: Decision | undefined
  /** Where it is there, to be called once the response has ended: it gives back places, and what does not count after all. */
  readonly settle: Settle | undefined
  /** Before it goes on; whoever was told of the outcome need not wait any more. */
  readonly delay?: Delay
}

/** The request is answered here. */
export interface Answer {
  readonly passes: false
  readonly status: number
  /** With the type of the body. */
  readonly headers: readonly HeaderPair[]
  readonly body: string
  readonly decision: Decision
}

/** What is to be done with a request. */
export type Outcome = Pass | Answer

/** Nobody was asked. */
export const PASS: Pass = Object.freeze({ passes: true, headers: [], decision: undefined, settle: undefined })

/** Of what was decided about a request before and now what is stricter; null where no limit was asked. */
export function stricter(before: Decision | null, now: Decision | undefined): Decision | null {
  return now === undefined || (before !== null && !bindsMore(now, before)) ? before : now
}

const ownWatch = /* @__PURE__ */ onceInProcess('misuse watch', () => new MisuseWatch())

/**
 * Decides about requests: what all adapters share. Options are read once. Answers at once as far as keys, costs and limiters do.
 *
 * Of several limits a denial by one costs those of this process nothing, and what was taken of others goes back: see {@link SeveralTakes}.
 */
export class Gatekeeper<Request> {
  private readonly rules: readonly Weigher<Request>[]
  private readonly only: Weigher<Request> | undefined
  private readonly writer: HeaderWriter
  private readonly bodyFor: BodyMaker<Request>
  private readonly statuses: Readonly<Record<DenialKind, number>>
  private readonly counts: (status: number, request: Request) => Awaitable<boolean>
  private readonly skip: GatekeeperOptions<Request>['skip']
  private readonly onDenied: GatekeeperOptions<Request>['onDenied']
  /** Told of the first requests; answers with who is to be told of the next one. */
  private onRequest: OnRequest | undefined
  private checksProxy: ((facts: RequestFacts) => boolean) | undefined
  /** Renews what is held as long as responses take. */
  private readonly after: After
  /** Times delays, for which requests wait. */
  private readonly afterDelay: After
  private readonly takeOnly: Weighed<Request, Outcome>
  private readonly delays: boolean

  /** @throws {PolicyError} on an unknown option, or one that is wrong. */
  constructor(
    options: GatekeeperOptions<Request>,
    { watch = ownWatch, nowMs = preciseClock().nowMs, perRoute = false, after }: Partial<Surroundings> & { readonly after?: After } = {},
  ) {
    this.rules = limitRules(options, { watch, nowMs, perRoute })
    this.only = this.rules.length === 1 ? this.rules[0] : undefined
    const { headers = 'draft-11' } = options
    this.writer = new HeaderWriter(typeof headers === 'string' ? { version: headers } : headers)
    this.bodyFor = bodyMaker(options.body)
    this.statuses = statusesOf(options.status)
    this.counts = countsOf(options.counts)
    this.skip = checkedFunction('skip', options.skip)
    this.onDenied = checkedFunction('onDenied', options.onDenied)
    this.after = after ?? afterUnheld
    this.afterDelay = after ?? afterHeld
    this.delays = (options.limits ?? [options]).some(({ slowDown }) => slowDown !== undefined)
    this.onRequest = ({ isReceived = false }) => watch.serving(isReceived)
    this.checksProxy = watch.proxyCheck(readersOf(options))
    this.takeOnly = (rule, key, cost, request) => this.take(rule, key, cost, request)
  }

  /**
   * What is to be done with a request.
   *
   * Throws, or rejects with, what the functions among the options throw, and `PolicyError` `KEY_MISSING`, `KEY_INVALID` or `COST_INVALID` where
   * they give no key or no cost.
   */
  decide(facts: RequestFacts, request: Request): Awaitable<Outcome> {
    if (this.skip === undefined) return this.ask(facts, request)
    const skipped = this.skip(request, facts)
    if (isPromise(skipped)) return this.askUnless(skipped, facts, request)
    return skipped ? PASS : this.ask(facts, request)
  }

  private askUnless(skipped: Promise<boolean>, facts: RequestFacts, request: Request): Promise<Outcome> {
    return skipped.then((isSkipped) => (isSkipped ? PASS : this.ask(facts, request)))
  }

  private ask(facts: RequestFacts, request: Request): Awaitable<Outcome> {
    if (this.onRequest !== undefined) this.onRequest = this.onRequest(facts)
    if (this.checksProxy !== undefined && !this.checksProxy(facts)) this.checksProxy = undefined
    const { only } = this
    const outcome = only === undefined ? this.askSeveral(facts, request) : only.weigh(facts, request, this.takeOnly, PASS)
    return this.delays ? chained(outcome, (found) => this.delayed(found, facts)) : outcome
  }

  private delayed(outcome: Outcome, facts: RequestFacts): Awaitable<Outcome> {
    if (!outcome.passes || outcome.delay === undefined) return outcome
    return afterDelay(outcome.delay, outcome, facts, this.afterDelay)
  }

  private take(rule: LimitRule<Request>, key: Key, cost: number, request: Request): Awaitable<Outcome> {
    const answer = rule.takePlainly(key, cost, request)
    if (answer instanceof Asked) return this.concluded([answer], request)
    if (isPromise<Asked | Decision>(answer)) return this.concludedLater(answer, request)
    // What nearly every request comes to.
    return { passes: true, headers: this.writer.write(rule.policyOf(key), answer, key), decision: answer, settle: undefined }
  }

  private concludedLater(asked: Promise<Asked>, request: Request): Promise<Outcome> {
    return asked.then((answered) => this.concluded([answered], request))
  }

  private askSeveral(facts: RequestFacts, request: Request): Awaitable<Outcome> {
    const questions = answersOf(this.rules, (rule) => rule.weigh<Question<Request> | undefined>(facts, request, questionOf, undefined))
    return chained(questions, (all) => {
      const takes = new SeveralTakes(
        all.filter((question) => question !== undefined),
        request,
      )
      return chained(takes.take(), (asked) => this.concluded(asked, request))
    })
  }

  /** What comes of what the limits said, once `onDenied` has heard of those in the shadow. */
  private concluded(asked: readonly Asked[], request: Request): Awaitable<Outcome> {
    const { onDenied } = this
    const shadowed = onDenied === undefined ? [] : asked.filter(({ wouldDeny }) => wouldDeny)
    if (onDenied === undefined || shadowed.length === 0) return this.written(asked, request)
    try {
      const heard = onDenied(denialOf(shadowed, true), request)
      return isPromise(heard) ? this.writtenLater(heard, asked, request) : this.written(asked, request)
    } catch (error) {
      return failed(asked, error)
    }
  }

  private writtenLater(heard: Promise<unknown>, asked: readonly Asked[], request: Request): Promise<Outcome> {
    return heard.then(
      () => this.written(asked, request),
      (error) => failed(asked, error),
    )
  }

  /** The same as it is written for the client, who is not to know of the shadow. */
  private written(asked: readonly Asked[], request: Request): Awaitable<Outcome> {
    const seen = asked.some(isHidden) ? asked.filter((each) => !isHidden(each)) : asked
    const headers = this.writer.writeAll(seen)
    const denying = seen.filter(({ denies }) => denies)
    if (denying.length > 0) return this.deny(denialOf(denying, false), headers, request)
    const open = asked.filter(({ isOpen }) => isOpen)
    const settle = open.length === 0 ? undefined : settleOf(open, (status) => this.counts(status, request), this.after)
    const pass: Pass = { passes: true, headers, decision: strictestOf(asked)?.decision, settle }
    return this.delays ? this.slowed(pass, asked, request) : pass
  }

  /** The same with the longest of its delays; denied where there is no place for one more. */
  private slowed(pass: Pass, asked: readonly Asked[], request: Request): Awaitable<Outcome> {
    try {
      const delay = longestDelay(asked, request)
      if (delay === undefined) return pass
      if (!(delay instanceof Asked)) return { ...pass, delay }
      for (const each of asked) each.undo()
      return this.deny(denialOf([delay], false), this.writer.writeAll([delay]), request)
    } catch (error) {
      return failed(asked, error)
    }
  }

  private deny(denial: Denial, headers: readonly HeaderPair[], request: Request): Awaitable<Answer> {
    return chained(this.onDenied?.(denial, request) as Awaitable<unknown>, (returned) => {
      const change = checkedChange(returned)
      const status = change.status ?? this.statuses[denial.kind]
      const body = change.body === undefined ? this.bodyFor(denial, status, request) : bodyOf(change.body, 'onDenied')
      return chained(body, ({ type, text }): Answer => {
        const all: HeaderPair[] = [...headers, ['Content-Type', type], ['Cache-Control', 'no-store'], ...(change.headers ?? [])]
        return { passes: false, status, headers: all, body: text, decision: denial.decision }
      })
    })
  }
}

type OnRequest = (facts: ReceivedFacts) => OnRequest | undefined

/** @throws {PolicyError} `OPTION_INVALID` */
function checkedFunction<Option>(name: string, option: Option): Option {
  if (option === undefined || typeof option === 'function') return option
  throw new PolicyError('OPTION_INVALID', name, option, 'must be a function')
}

function questionOf<Request>(rule: LimitRule<Request>, key: Key, cost: number): Question<Request> {
  return { rule, key, cost }
}

/** A hook failed, and with it the request: nothing stays taken. */
function failed(asked: readonly Asked[], error: unknown): never {
  for (const each of asked) each.undo()
  throw error
}

/** What clients are not to know of. */
function isHidden({ rule, decision }: Asked): boolean {
  return rule.shadow || decision.wouldDeny === true
}
