import { checkedWaitRequest } from './arguments.js'
import { type Awaitable, ignore, isPromise } from './awaitable.js'
import type { Decision } from './decision/decision.js'
import { emptyPermit, isPermit, keptPermit, renew } from './decision/permit.js'
import { takeOf } from './decision/settled-takes.js'
import { PolicyError } from './errors.js'
import { nameOf } from './key.js'
import type { Key, WaitOptions } from './limiter.js'
import { checkInteger, checkLimiter, checkOptions, has } from './options/option-checks.js'
import type { Policy } from './policy/policy.js'
import { type After, afterHeld, type Clock, preciseClock } from './time/clock.js'
import { type Duration, toMs } from './time/duration.js'
import { AbortWatch } from './waiting/abort-watch.js'

/** When requests are delayed before they pass, and for how long. Requests over the limit are denied as without it. */
export interface SlowDownOptions<Request> {
  /**
   * Tokens of a key that may be in use before its requests are delayed, 0 to 1,000,000,000.
   *
   * @defaultValue required
   * @example { after: 50, delay: '100ms' }
   */
  readonly after: number
  /**
   * The delay, or a function that returns it in milliseconds; `over` is 1 for the first token above `after`.
   *
   * @defaultValue required
   * @example { after: 50, delay: (over: number) => over * 100 }
   */
  readonly delay: Duration | ((over: number, request: Request) => number)
  /**
   * The longest delay, at most 1 h.
   *
   * @defaultValue `'30s'`
   * @example { after: 50, delay: (over: number) => over * 100, maxDelay: '5s' }
   */
  readonly maxDelay?: Duration
  /**
   * Requests that may be delayed at once, 1 to 1,000,000, of them 10 of one key. Further ones are denied and cost nothing.
   *
   * @defaultValue `1_000`
   * @example { after: 50, delay: '1s', maxDelayed: 200 }
   */
  readonly maxDelayed?: number
}

const NAMES: readonly string[] = ['after', 'delay', 'maxDelay', 'maxDelayed'] satisfies (keyof SlowDownOptions<never>)[]
const EXAMPLE = '{ after: 50, delay: (over) => over * 100 }'
const LONGEST_MS = 3_600_000
const MOST_TOKENS = 1_000_000_000
const MOST_DELAYED = 1_000_000
/** Delayed requests of a key. */
const MOST_OF_KEY = 10

/** A delay, with a place among the delayed requests. */
export interface Delay {
  readonly ms: number
  /** Frees the place. */
  readonly leave: () => void
}

/** The checked option, with the number of requests that are delayed. */
export class SlowDown<Request> {
  private readonly after: number
  private readonly delay: number | ((over: number, request: Request) => number)
  private readonly maxMs: number
  private readonly most: number
  private readonly byKey = new Map<string, number>()
  private delayed = 0

  /** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `DURATION_INVALID` */
  constructor(options: SlowDownOptions<Request>) {
    const own = checkOptions(options, NAMES, EXAMPLE, 'slowDown', 'slowDown')
    const { after, delay, maxDelay = 30_000, maxDelayed = 1_000 } = own
    checkInteger('slowDown.after', after, 0, MOST_TOKENS)
    checkInteger('slowDown.maxDelayed', maxDelayed, 1, MOST_DELAYED)
    this.after = after
    this.delay = typeof delay === 'function' ? delay : toMs(delay, 'slowDown.delay')
    this.maxMs = toMs(maxDelay, 'slowDown.maxDelay')
    if (this.maxMs > LONGEST_MS) throw new PolicyError('DURATION_INVALID', 'slowDown.maxDelay', maxDelay, 'must be at most 1 h')
    this.most = maxDelayed
  }

  /**
   * Milliseconds by which an allowed request is delayed. A decision without the store is not delayed, as the tokens in use are not known.
   *
   * @throws {PolicyError} `OPTION_INVALID` if the function does not return a time, and what it throws.
   */
  delayMs({ remaining, source, wouldDeny, parts }: Decision, { burst, policies }: Policy, request: Request): number {
    if (source === 'outage' || wouldDeny === true) return 0
    const used = parts === undefined ? burst - remaining : Math.max(...parts.map((part, i) => (policies?.[i]?.burst ?? 0) - part.remaining))
    const over = used - this.after
    if (over <= 0) return 0
    const ms: unknown = typeof this.delay === 'number' ? this.delay : this.delay(over, request)
    if (typeof ms === 'number' && ms >= 0) return Math.min(ms, this.maxMs)
    if (isPromise(ms)) ignore(ms)
    throw new PolicyError('OPTION_INVALID', 'slowDown.delay', ms, 'must return milliseconds >= 0, and not a promise')
  }

  /** A place among the delayed requests; undefined if there is none. */
  enter(key: string): (() => void) | undefined {
    const ofKey = this.byKey.get(key) ?? 0
    if (this.delayed >= this.most || ofKey >= MOST_OF_KEY) return undefined
    this.delayed++
    this.byKey.set(key, ofKey + 1)
    return () => {
      this.delayed--
      const left = (this.byKey.get(key) ?? 1) - 1
      if (left === 0) this.byKey.delete(key)
      else this.byKey.set(key, left)
    }
  }
}

/** A request that may end before its delay does. */
interface Awaiting {
  whenGone?(callback: () => void): void
}

/** Resolves with `value` when the delay is over, or at once when the client has disconnected. */
export function afterDelay<Value>({ ms, leave }: Delay, value: Value, waits: Awaiting, after: After): Promise<Value> {
  return new Promise((resolve, reject) => {
    let isOver = false
    let cancel = (): void => {}
    const end = (): void => {
      if (isOver) return
      isOver = true
      cancel()
      leave()
      resolve(value)
    }
    try {
      cancel = after(ms, end)
    } catch (error) {
      leave()
      reject(error)
      return
    }
    waits.whenGone?.(end)
  })
}

/** The limiter that is delayed, in memory or shared. */
interface DelayedLimiter<Answer extends Decision> {
  readonly policy: Policy
  policyOf?(key: Key): Policy
  take(key: Key, cost?: number): Awaitable<Answer>
  refund(key: Key, tokens: number): Awaitable<Decision>
}

/** Takes that resolve later the more of a key is in use. */
export interface SlowedTakes<Answer extends Decision = Decision> {
  /**
   * Takes `cost` tokens and resolves once the delay is over; a denial resolves at once. If no more takes may be delayed, it is denied with
   * the delay as `retryAfterMs`, and costs nothing. If the signal aborts it rejects with the reason, and the charge is refunded.
   */
  take(key: Key, options?: Pick<WaitOptions, 'cost' | 'signal'>): Promise<Answer>
}

/**
 * Delays takes of a limiter before it denies them, like the option `slowDown` of middleware.
 *
 * @param options `delay` is called with the key instead of a request.
 * @throws {PolicyError} on an option that is wrong.
 * @example
 * const slowed = slowDown(limiter, { after: 50, delay: (over) => over * 100 })
 * const { allowed } = await slowed.take('user:42')
 */
export function slowDown<Answer extends Decision>(
  limiter: DelayedLimiter<Answer>,
  options: SlowDownOptions<Key>,
  third: { readonly clock?: Clock } = {},
): SlowedTakes<Answer> {
  checkLimiter('limiter', limiter)
  const { clock } = checkOptions(third, ['clock'], '{ clock }', 'slowDown()')
  const aborts = new AbortWatch()
  const ticking = clock ?? preciseClock()
  const slow = new SlowDown<Key>(options)
  const after =
    clock === undefined || !has(clock, 'after') ? afterHeld : (ms: number, fn: () => void) => clock.after?.(ms, fn) ?? (() => undefined)
  return {
    async take(key, waitOptions = {}) {
      const { cost, signal } = checkedWaitRequest(key, waitOptions)
      signal?.throwIfAborted()
      const reservation = await takeOf(limiter, key, cost, () => ticking.nowMs())
      const decision = reservation.decision as Answer
      if (!decision.allowed) return decision
      const giveBack = (): void => {
        try {
          ignore(isPermit(decision) ? decision.release() : reservation.cancel())
        } catch {
          // The limiter is closed or unreachable: the charge wears off.
        }
      }
      let stopRenewing: (() => void) | undefined
      try {
        signal?.throwIfAborted()
        const ms = slow.delayMs(decision, limiter.policyOf?.(key) ?? limiter.policy, key)
        if (ms === 0) return decision
        const leave = slow.enter(nameOf(key))
        if (leave === undefined) {
          giveBack()
          const denied = { ...decision, allowed: false, retryAfterMs: Math.max(1, Math.ceil(ms)) }
          return isPermit(decision) ? { ...denied, ...emptyPermit(denied) } : denied
        }
        // A delay may be longer than the time to live of a permit.
        if (isPermit(decision)) stopRenewing = keptPermit(decision, limiter, key, after)
        let unwatch: (() => void) | undefined
        const whenGone = (callback: () => void): void => {
          unwatch = signal && aborts.add(signal, callback)
        }
        await afterDelay({ ms, leave }, undefined, { whenGone }, after)
        unwatch?.()
        signal?.throwIfAborted()
        if (isPermit(decision)) renew(decision)
        return decision
      } catch (error) {
        giveBack()
        throw error
      } finally {
        stopRenewing?.()
      }
    },
  }
}
