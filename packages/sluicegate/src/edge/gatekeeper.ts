import { bindsMore } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import type { HeaderPair } from '../headers/header-pair.js'
import { HeaderWriter } from '../headers/header-writer.js'
import type { RequestFacts } from '../keys/request-facts.js'
import type { Key } from '../limiter.js'
import { Asked } from './asked.js'
import { type Awaitable, chained, isPromise, together } from './awaitable.js'
import { countsOf } from './counted.js'
import { type Denial, type DenialKind, denialOf } from './denial.js'
import { type BodyMaker, bodyMaker, bodyOf } from './denial-body.js'
import { statusesOf } from './denial-status.js'
import type { AnswerChange, GatekeeperOptions } from './gatekeeper-options.js'
import type { LimitRule } from './limit-rule.js'
import { limitRules, readersOf, type Surroundings } from './limit-rules.js'
import { MisuseWatch } from './misuse-watch.js'
import { type Answer, type Outcome, PASS } from './outcome.js'

/** What a rule is to be asked. */
interface Question<Request> {
  readonly rule: LimitRule<Request>
  readonly key: Key
  readonly cost: number
}

const ownWatch = new MisuseWatch()
const { performance } = globalThis
const sinceStartMs = (): number => performance.now()

/**
 * Decides about requests: what all adapters share. Options are read once. Answers at once as far as keys, costs and limiters do.
 *
 * Of several limits each is looked at before any is charged, so that a denial by one costs the others nothing; then all are. Should one deny
 * after all, because another thread or process was quicker, what the others took goes back.
 */
export class Gatekeeper<Request> {
  private readonly rules: readonly LimitRule<Request>[]
  private readonly only: LimitRule<Request> | undefined
  private readonly writer: HeaderWriter
  private readonly bodyFor: BodyMaker<Request>
  private readonly statuses: Readonly<Record<DenialKind, number>>
  private readonly counts: (status: number, request: Request) => boolean
  private readonly skip: GatekeeperOptions<Request>['skip']
  private readonly onDenied: GatekeeperOptions<Request>['onDenied']
  private readonly watch: MisuseWatch
  private checksProxy: ((facts: RequestFacts) => boolean) | undefined

  /** @throws {PolicyError} on an unknown option, or one that is wrong. */
  constructor(
    options: GatekeeperOptions<Request>,
    { watch = ownWatch, nowMs = sinceStartMs, perRoute = false }: Partial<Surroundings> = {},
  ) {
    this.rules = limitRules(options, { watch, nowMs, perRoute })
    this.only = this.rules.length === 1 ? this.rules[0] : undefined
    const { headers = 'draft-11' } = options
    this.writer = new HeaderWriter(typeof headers === 'string' ? { version: headers } : headers)
    this.bodyFor = bodyMaker(options.body)
    this.statuses = statusesOf(options.status)
    this.counts = countsOf(options.counts)
    this.skip = options.skip
    this.onDenied = options.onDenied
    this.watch = watch
    this.checksProxy = watch.proxyCheck(readersOf(options))
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
    if (isPromise(skipped)) return skipped.then((isSkipped) => (isSkipped ? PASS : this.ask(facts, request)))
    return skipped ? PASS : this.ask(facts, request)
  }

  private ask(facts: RequestFacts, request: Request): Awaitable<Outcome> {
    this.watch.serving()
    if (this.checksProxy !== undefined && !this.checksProxy(facts)) this.checksProxy = undefined
    const { only } = this
    if (only === undefined) {
      const questions = this.rules.map((rule) => questionOf(rule, facts, request))
      return chained(together(questions), (all) => this.askAll(all.filter(isCounted), request))
    }
    const cost = only.costOf(facts, request)
    // What costs nothing needs no key.
    if (cost === 0) return PASS
    const key = only.keyOf(facts, request)
    if (!isPromise(key) && !isPromise(cost)) return this.askOnly(only, key, cost, request)
    return Promise.all([key, cost]).then(([foundKey, foundCost]) => this.askOnly(only, foundKey, foundCost, request))
  }

  private askOnly(rule: LimitRule<Request>, key: Key, cost: number, request: Request): Awaitable<Outcome> {
    if (cost === 0) return PASS
    const asked = rule.take(key, cost, request)
    return asked instanceof Asked ? this.outcomeOfOne(asked, request) : asked.then((answered) => this.outcomeOfOne(answered, request))
  }

  /** What nearly every request comes to, without a list. */
  private outcomeOfOne(asked: Asked, request: Request): Awaitable<Outcome> {
    const { decision, policy, key, rule } = asked
    if (!decision.allowed || rule.shadow || asked.isOpen || decision.wouldDeny) return this.outcomeOf([asked], request)
    const headers = rule.unit === undefined ? this.writer.write(policy, decision, key) : this.writer.writeAll([asked])
    return { passes: true, headers, decision, settle: undefined }
  }

  private askAll(questions: readonly Question<Request>[], request: Request): Awaitable<Outcome> {
    const foreseen = together(questions.map(({ rule, key, cost }) => rule.peek(key, cost, request)))
    return chained(foreseen, (peeked) => {
      if (!peeked.some(({ denies }) => denies)) return this.takeAll(questions, request)
      // Those that deny are asked as by any take, so that the denial is told and counted there.
      const again = peeked.map((asked, i) => {
        const { rule, key, cost } = questions[i] as Question<Request>
        return asked.denies ? rule.take(key, cost, request) : asked
      })
      return chained(together(again), (asked) => {
        for (const each of asked) each.undo()
        // One that passes by now was a moment too late.
        return this.outcomeOf(asked.some(({ denies }) => denies) ? asked : peeked, request)
      })
    })
  }

  private takeAll(questions: readonly Question<Request>[], request: Request): Awaitable<Outcome> {
    return chained(together(questions.map(({ rule, key, cost }) => rule.take(key, cost, request))), (asked) => {
      if (asked.some(({ denies }) => denies)) for (const each of asked) each.undo()
      return this.outcomeOf(asked, request)
    })
  }

  private outcomeOf(asked: readonly Asked[], request: Request): Awaitable<Outcome> {
    const { onDenied } = this
    const shadowed = onDenied === undefined ? [] : asked.filter(({ wouldDeny }) => wouldDeny)
    if (onDenied === undefined || shadowed.length === 0) return this.told(asked, request)
    try {
      const told = onDenied(denialOf(shadowed, true), request)
      return isPromise(told)
        ? told.then(
            () => this.told(asked, request),
            (error) => failed(asked, error),
          )
        : this.told(asked, request)
    } catch (error) {
      return failed(asked, error)
    }
  }

  private told(asked: readonly Asked[], request: Request): Awaitable<Outcome> {
    const seen = asked.some(isHidden) ? asked.filter((each) => !isHidden(each)) : asked
    const headers = this.writer.writeAll(seen)
    const denying = seen.filter(({ denies }) => denies)
    if (denying.length > 0) return this.deny(denialOf(denying, false), headers, request)
    const open = asked.filter(({ isOpen }) => isOpen)
    const settle = open.length === 0 ? undefined : (status: number | undefined) => this.settle(open, status, request)
    return { passes: true, headers, decision: strictest(asked), settle }
  }

  private settle(open: readonly Asked[], status: number | undefined, request: Request): void {
    // How a response would have ended that did not is not known: it counts, or breaking off would be free.
    let counts = true
    try {
      counts = status === undefined || this.counts(status, request)
    } finally {
      for (const each of open) each.settle(counts)
    }
  }

  private deny(denial: Denial, headers: readonly HeaderPair[], request: Request): Awaitable<Answer> {
    const change = this.onDenied?.(denial, request)
    return chained(change as Awaitable<AnswerChange | undefined>, (changed) => {
      const status = changed?.status ?? this.statuses[denial.kind]
      const body = changed?.body === undefined ? this.bodyFor(denial, status, request) : bodyOf(changed.body)
      return chained(body, ({ type, text }): Answer => {
        const all: HeaderPair[] = [...headers, ['Content-Type', type], ['Cache-Control', 'no-store'], ...(changed?.headers ?? [])]
        return { passes: false, status, headers: all, body: text, decision: denial.decision }
      })
    })
  }
}

function questionOf<Request>(rule: LimitRule<Request>, facts: RequestFacts, request: Request): Awaitable<Question<Request>> {
  const cost = rule.costOf(facts, request)
  // What costs nothing needs no key.
  if (cost === 0) return { rule, key: '', cost }
  const key = rule.keyOf(facts, request)
  if (!isPromise(key) && !isPromise(cost)) return { rule, key, cost }
  return Promise.all([key, cost]).then(([foundKey, foundCost]) => ({ rule, key: foundKey, cost: foundCost }))
}

function isCounted({ cost }: { readonly cost: number }): boolean {
  return cost !== 0
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

function strictest(asked: readonly Asked[]): Decision | undefined {
  return asked
    .map(({ decision }) => decision)
    .reduce<Decision | undefined>((most, each) => (most && !bindsMore(each, most) ? most : each), undefined)
}
