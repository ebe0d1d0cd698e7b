import { createLimiter, type Limiter, type ManualClock } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { describePolicy } from 'sluicegate-config/policy-text.js'
import type { LogRecord } from './log-reader.js'
import type { RequestRule } from './request-rule.js'

/** Keys that were denied are counted one by one up to this number. */
const MAX_DENIED_KEYS = 50_000
const TOP_KEYS = 10
/** A list of the top keys is exact to within the requests divided by this. */
const TRACKED_KEYS = 1_000
/** Each key that the log can bring has room, up to this many for each policy: 16 bytes a key. */

/** One denial, for a list of all of them. */
export type Denial = ReturnType<ReplayedPolicy['denial']>

/** What one policy would have done. */
export type PolicyResult = ReturnType<ReplayedPolicy['result']>

/** A policy of a configuration, fed by the log instead of by requests. */
export class ReplayedPolicy {
  readonly name: string
  readonly #config: PolicyConfig
  readonly #rule: RequestRule
  readonly #limiter: Limiter
  readonly #deniedKeys = new Set<string>()
  #requests = 0
  #denied = 0
  #withoutKey = 0
  #deniedKeysAreMore = false
  #firstDenialMs = Number.NaN
  #longestRetryMs = 0
  #lastRetryMs = 0
  #lastKey = ''

  constructor(config: PolicyConfig, rule: RequestRule, clock: ManualClock) {
    const { policy, maxKeys, onFull, tiers } = config
    this.name = policy.name
    this.#config = config
    this.#rule = rule
    this.#limiter = createLimiter(policy, {
      clock,
      onFull,
      hotKeys: TRACKED_KEYS,
      ...(tiers && { policyFor: (key) => tiers.policyOf(key) }),
      ...(maxKeys && { maxKeys }),
    })
  }

  /** False if the policy would have denied the request; true also where the rule does not count it. */
  take(record: LogRecord, nowMs: number): boolean {
    const { key: template, filter } = this.#rule
    if (filter !== undefined && !filter.matches(record)) return true
    const key = template.keyOf(record)
    if (key === undefined) {
      this.#withoutKey++
      return true
    }
    this.#requests++
    const { allowed, retryAfterMs } = this.#limiter.take(key)
    if (!allowed) this.#countDenial(key, retryAfterMs, nowMs)
    return allowed
  }

  /** The denial that {@link ReplayedPolicy.take} counted last. */
  denial(config: string, timeMs: number) {
    // A request that can never pass has none.
    const retryAfterMs = Number.isFinite(this.#lastRetryMs) ? this.#lastRetryMs : null
    return { time: new Date(timeMs).toISOString(), config, policy: this.name, key: this.#lastKey, retryAfterMs }
  }

  result() {
    return {
      policy: this.name,
      description: describePolicy(this.#config.policy),
      key: this.#rule.key.text,
      match: this.#rule.filter?.text,
      requests: this.#requests,
      allowed: this.#requests - this.#denied,
      denied: this.#denied,
      /** Requests that the rule counts but whose key is empty in the log: they are not limited. */
      withoutKey: this.#withoutKey,
      deniedKeys: this.#deniedKeys.size,
      /** True when there are more denied keys than are counted one by one. */
      deniedKeysAreMore: this.#deniedKeysAreMore,
      firstDenial: Number.isNaN(this.#firstDenialMs) ? null : new Date(this.#firstDenialMs).toISOString(),
      longestRetryAfterMs: this.#longestRetryMs,
      /** The keys with the most denials. */
      topDenied: this.#limiter.hotKeys(TOP_KEYS).denials,
      /** State that was forgotten for want of room: above 0 the figures are too low. */
      evictions: this.#limiter.stats().evictions,
    }
  }

  close(): void {
    this.#limiter.close()
  }

  #countDenial(key: string, retryAfterMs: number, timeMs: number): void {
    this.#denied++
    this.#lastKey = key
    this.#lastRetryMs = retryAfterMs
    if (Number.isNaN(this.#firstDenialMs)) this.#firstDenialMs = timeMs
    if (Number.isFinite(retryAfterMs) && retryAfterMs > this.#longestRetryMs) this.#longestRetryMs = retryAfterMs
    if (this.#deniedKeys.size < MAX_DENIED_KEYS) this.#deniedKeys.add(key)
    else this.#deniedKeysAreMore ||= !this.#deniedKeys.has(key)
  }
}
