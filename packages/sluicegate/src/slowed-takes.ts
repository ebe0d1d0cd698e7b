import { type Awaitable, ignore } from './awaitable.js'
import { afterHeld, type Clock } from './clock.js'
import type { Decision } from './decision.js'
import { nameOf } from './key.js'
import type { Key, WaitOptions } from './limiter.js'
import { checkLimiter } from './options/option-checks.js'
import { emptyPermit, isPermit, keptPermit, renew } from './permit.js'
import type { Policy } from './policy/policy.js'
import { afterDelay, SlowDown, type SlowDownOptions } from './slow-down.js'
import { checkedWaitRequest } from './wait-options.js'
import { AbortWatch } from './waiting/abort-watch.js'

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
  { clock }: { readonly clock?: Clock } = {},
): SlowedTakes<Answer> {
  checkLimiter('limiter', limiter)
  const aborts = new AbortWatch()
  const slow = new SlowDown<Key>(options)
  const after = clock?.after === undefined ? afterHeld : (ms: number, fn: () => void) => clock.after?.(ms, fn) ?? (() => undefined)
  return {
    async take(key, waitOptions = {}) {
      const { cost, signal } = checkedWaitRequest(key, waitOptions)
      signal?.throwIfAborted()
      const decision = await limiter.take(key, cost)
      if (!decision.allowed) return decision
      const giveBack = (): void => {
        try {
          ignore(isPermit(decision) ? decision.release() : limiter.refund(key, cost))
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
