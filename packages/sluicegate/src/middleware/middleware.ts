import { type Awaitable, answersOf, chained, isPromise } from '../awaitable.js'
import { bindsMore, type Decision, strictestOf } from '../decision/decision.js'
import type { HeaderPair } from '../headers/header.js'
import { HeaderWriter } from '../headers/header-writer.js'
import { giveHold } from '../holds/hold-of.js'
import type { RequestFacts } from '../keys/key-reader.js'
import { onceInProcess } from '../once-in-process.js'
import { afterDelay, type Delay } from '../slow-down.js'
import { type After, afterHeld, afterUnheld, preciseClock } from '../time/clock.js'
import { checkFunctions } from './check-options.js'
import { type Denial, denialOf } from './denial.js'
import { DenialResponder, type DenialResponse } from './denial-response.js'
import { KeylessRequest } from './keyless.js'
import type { Charge, ChargeSource } from './limit.js'
import { checkOptionNames } from './limit-argument.js'
import { LimitResult } from './limit-result.js'
import { type LimitEnvironment, limitsOf, readersOf } from './limits.js'
import type { MiddlewareOptions } from './middleware-options.js'
import { MisuseWatch, type ReceivedFacts } from './misuse-watch.js'
import { countsOf, type Settle, settleOf } from './settle.js'
import { longestDelay, TakeAll } from './several-limits.js'

/** The request passes to its handler. */
export interface Pass {
  readonly passes: true
  /** For the response, whatever it will be. */
  readonly headers: readonly HeaderPair[]
  /** The strictest decision of the limits; undefined if no limit applied. */
  readonly decision: Decision | undefined
  /** Present where something has to be given back: the adapter calls it once the response has ended. */
  readonly settle: Settle | undefined
  /** A delay by `slowDown`, which {@link Middleware.handle} has already waited for. */
  readonly delay?: Delay
}

/** What an adapter does with a request: pass it to its handler, or send the response of a denial. */
export type MiddlewareResult = Pass | DenialResponse

const PASS_UNCOUNTED: Pass = Object.freeze({ passes: true, headers: [], decision: undefined, settle: undefined })

/** One for the process: misuse is counted and warned of across all middleware. */
const processWatch = /* @__PURE__ */ onceInProcess('misuse watch', () => new MisuseWatch())

/**
 * Rate limits requests, for all frameworks: an adapter gives {@link handle} the facts of a request and acts on the result. In the order of this file:
 *
 * 1. The constructor checks and reads the options, once.
 * 2. `skip` lets a request pass uncounted.
 * 3. Each limit finds the policy, the cost and the key of the request: a {@link Charge}.
 * 4. The limit takes; several limits take all or nothing ({@link TakeAll}).
 * 5. `onDenied` is called with denials in shadow mode.
 * 6. Headers are written, and the request passes, at once or after a delay, or
 * 7. is denied with a response.
 * 8. After the response the adapter calls `settle`: permits are released, holds closed, and requests that do not count are refunded (`settle.ts`).
 *
 * Every step returns at once if what it calls does, so that a limiter in memory decides without a promise. Such steps call a method named
 * `...Later` with a promise: a closure in the step itself would be allocated for every request.
 */
export class Middleware<Request> {
  private readonly limits: readonly ChargeSource<Request>[]
  private readonly onlyLimit: ChargeSource<Request> | undefined
  private readonly writer: HeaderWriter
  private readonly responder: DenialResponder<Request>
  private readonly counts: (status: number, request: Request) => Awaitable<boolean>
  private readonly skip: MiddlewareOptions<Request>['skip']
  private readonly onDenied: MiddlewareOptions<Request>['onDenied']
  /** Whether a limit has `slowDown`. */
  private readonly delays: boolean
  /** A timer that renews permits, and one that ends delays, which keeps the process alive. */
  private readonly afterRenewal: After
  private readonly afterDelay: After
  /** Look at the first requests for misuse; undefined when they have seen enough. */
  private onRequest: OnRequest | undefined
  private onProxyHeaders: ((facts: RequestFacts) => boolean) | undefined

  /** @throws {PolicyError} on an option that is unknown or wrong. */
  constructor(
    options: MiddlewareOptions<Request>,
    {
      watch = processWatch,
      nowMs = preciseClock().nowMs,
      perRoute = false,
      after,
    }: Partial<LimitEnvironment> & { readonly after?: After } = {},
  ) {
    const checked = checkOptionNames(options)
    this.limits = limitsOf(checked, { watch, nowMs, perRoute })
    this.onlyLimit = this.limits.length === 1 ? this.limits[0] : undefined
    const { headers = 'draft-11' } = checked
    this.writer = new HeaderWriter(typeof headers === 'string' ? { version: headers } : headers)
    this.responder = new DenialResponder(checked)
    this.counts = countsOf(checked.counts)
    checkFunctions(checked)
    this.skip = checked.skip
    this.onDenied = checked.onDenied
    this.delays = (checked.limits ?? [checked]).some(({ slowDown }) => slowDown !== undefined)
    this.afterRenewal = after ?? afterUnheld
    this.afterDelay = after ?? afterHeld
    this.onRequest = ({ isReceived = false }) => watch.firstRequest(isReceived)
    this.onProxyHeaders = watch.proxyCheck(readersOf(checked))
  }

  /**
   * Decides about one request.
   *
   * @throws what the functions among the options throw, and `PolicyError` `KEY_INVALID` or `COST_INVALID` where they return what is no key or
   * no cost. Rejects with the same where the result is a promise.
   */
  handle(facts: RequestFacts, request: Request): Awaitable<MiddlewareResult> {
    if (this.skip === undefined) return this.limitRequest(facts, request)
    const isSkipped = this.skip(request, facts)
    if (isPromise(isSkipped)) return this.handleLater(isSkipped, facts, request)
    return isSkipped ? PASS_UNCOUNTED : this.limitRequest(facts, request)
  }

  private handleLater(isSkipped: Promise<boolean>, facts: RequestFacts, request: Request): Promise<MiddlewareResult> {
    return isSkipped.then((skipped) => (skipped ? PASS_UNCOUNTED : this.limitRequest(facts, request)))
  }

  private limitRequest(facts: RequestFacts, request: Request): Awaitable<MiddlewareResult> {
    if (this.onRequest !== undefined) this.onRequest = this.onRequest(facts)
    if (this.onProxyHeaders !== undefined && !this.onProxyHeaders(facts)) this.onProxyHeaders = undefined
    const result = this.takeOrDeny(facts, request)
    return this.delays ? this.delayed(result, facts) : result
  }

  private takeOrDeny(facts: RequestFacts, request: Request): Awaitable<MiddlewareResult> {
    try {
      return this.onlyLimit === undefined ? this.takeAll(facts, request) : this.takeOne(this.onlyLimit, facts, request)
    } catch (error) {
      return this.denyKeyless(error, request)
    }
  }

  private denyKeyless(error: unknown, request: Request): Awaitable<MiddlewareResult> {
    if (!(error instanceof KeylessRequest)) throw error
    const { denial, challenge } = error
    return chained(this.onDenied?.(denial, request) as Awaitable<unknown>, (change) =>
      this.responder.respond(denial, [], change, request, challenge),
    )
  }

  private takeOne(limit: ChargeSource<Request>, facts: RequestFacts, request: Request): Awaitable<MiddlewareResult> {
    const charge = limit.chargeFor(facts, request)
    return isPromise(charge) ? this.takeLater(charge, request) : this.take(charge, request)
  }

  private takeLater(charge: Promise<Charge<Request> | undefined>, request: Request): Promise<MiddlewareResult> {
    return charge.then(
      (found) => this.take(found, request),
      (error) => this.denyKeyless(error, request),
    )
  }

  private take(charge: Charge<Request> | undefined, request: Request): Awaitable<MiddlewareResult> {
    if (charge === undefined) return PASS_UNCOUNTED
    const { limit, key } = charge
    const taken = limit.takePlain(charge, request)
    if (taken instanceof LimitResult) return this.conclude([taken], request)
    if (isPromise<LimitResult | Decision>(taken)) return this.concludeLater(taken, request)
    // Nearly every request ends here.
    return { passes: true, headers: this.writer.write(limit.policyOf(key, taken), taken, key), decision: taken, settle: undefined }
  }

  private concludeLater(result: Promise<LimitResult>, request: Request): Promise<MiddlewareResult> {
    return result.then((found) => this.conclude([found], request))
  }

  private takeAll(facts: RequestFacts, request: Request): Awaitable<MiddlewareResult> {
    const charges = answersOf(this.limits, (limit) => limit.chargeFor(facts, request))
    if (isPromise(charges))
      return charges.then(
        (all) => this.takeFrom(all, request),
        (error) => this.denyKeyless(error, request),
      )
    return this.takeFrom(charges, request)
  }

  private takeFrom(all: readonly (Charge<Request> | undefined)[], request: Request): Awaitable<MiddlewareResult> {
    const takes = new TakeAll(
      all.filter((charge) => charge !== undefined),
      request,
    )
    return chained(takes.take(), (results) => this.conclude(results, request))
  }

  /** Calls `onDenied` with denials in shadow mode; headers and body show nothing of them. */
  private conclude(results: readonly LimitResult[], request: Request): Awaitable<MiddlewareResult> {
    const { onDenied } = this
    const shadowed = onDenied === undefined ? [] : results.filter(({ wouldDeny }) => wouldDeny)
    if (onDenied === undefined || shadowed.length === 0) return this.passOrDeny(results, request)
    return unlessFailed(results, () =>
      chained(onDenied(denialOf(shadowed, true), request) as Awaitable<unknown>, () => this.passOrDeny(results, request)),
    )
  }

  private passOrDeny(results: readonly LimitResult[], request: Request): Awaitable<MiddlewareResult> {
    const shown = results.some(isHidden) ? results.filter((result) => !isHidden(result)) : results
    const headers = this.writer.writeAll(shown)
    const denying = shown.filter(({ denies }) => denies)
    if (denying.length > 0) return this.deny(denialOf(denying, false), headers, request)
    for (const { hold, limit } of results) if (hold !== undefined) giveHold(request as object, limit.limiter.policy.name, hold)
    const open = results.filter(({ needsSettling }) => needsSettling)
    const settle = open.length === 0 ? undefined : settleOf(open, (status) => this.counts(status, request), this.afterRenewal)
    const pass: Pass = { passes: true, headers, decision: strictestOf(results)?.decision, settle }
    return this.delays ? this.withDelay(pass, results, request) : pass
  }

  /** Adds the longest delay of `slowDown`; a request for which no place among the delayed is left is denied. */
  private withDelay(pass: Pass, results: readonly LimitResult[], request: Request): Awaitable<MiddlewareResult> {
    return unlessFailed(results, () => {
      const delay = longestDelay(results, request)
      if (delay === undefined) return pass
      if (!(delay instanceof LimitResult)) return { ...pass, delay }
      for (const result of results) result.undo()
      return this.deny(denialOf([delay], false), this.writer.writeAll([delay]), request)
    })
  }

  private delayed(result: Awaitable<MiddlewareResult>, facts: RequestFacts): Awaitable<MiddlewareResult> {
    return chained(result, (found) => {
      if (!found.passes || !Object.hasOwn(found, 'delay') || found.delay === undefined) return found
      const delayed = afterDelay(found.delay, found, facts, this.afterDelay)
      // A delay may be longer than the time to live of a permit.
      const stopRenewing = found.settle?.keep?.()
      return stopRenewing === undefined ? delayed : delayed.finally(stopRenewing)
    })
  }

  private deny(denial: Denial, headers: readonly HeaderPair[], request: Request): Awaitable<DenialResponse> {
    return chained(this.onDenied?.(denial, request) as Awaitable<unknown>, (change) =>
      this.responder.respond(denial, headers, change, request),
    )
  }
}

/** The stricter of two decisions about one request; null if no limit applied. */
export function stricter(before: Decision | null, now: Decision | undefined): Decision | null {
  return now === undefined || (before !== null && !bindsMore(now, before)) ? before : now
}

type OnRequest = (facts: ReceivedFacts) => OnRequest | undefined

/** Runs a step that calls functions of the application. If one fails, so does the request, and its charges are undone. */
function unlessFailed<Result>(results: readonly LimitResult[], step: () => Awaitable<Result>): Awaitable<Result> {
  const fail = (error: unknown): never => {
    for (const result of results) result.undo()
    throw error
  }
  try {
    const done = step()
    return isPromise(done) ? done.then((result) => result, fail) : done
  } catch (error) {
    return fail(error)
  }
}

/** Whether clients must not notice the limit: it is in shadow mode, or its limiter is. */
function isHidden({ limit, decision }: LimitResult): boolean {
  return limit.shadow || decision.wouldDeny === true
}
