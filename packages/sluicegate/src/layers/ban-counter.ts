import type { BanRule } from '../ban-options.js'
import { BoundedMap } from '../bounded-map.js'
import type { Decision } from '../decision/decision.js'
import { bans } from '../decision/diagnostics.js'
import { PolicyError } from '../errors.js'
import type { Key, Limiter } from '../limiter.js'
import { newMemoryLimiter } from '../memory/memory-limiters.js'
import type { Policy } from '../policy/policy.js'
import { slidingLog } from '../policy/single-policy.js'
import { type Clock, forwardClock } from '../time/clock.js'
import { warnProcess } from '../warn-once.js'

/** Keys whose denials are counted; beyond that, the key with the fewest is evicted. */
const MOST_COUNTED = 20_000
/** Keys whose bans are remembered; beyond that, the oldest is evicted. The ban itself stays in force. */
const MOST_BANNED = 20_000

interface Ban {
  readonly bans: number
  readonly sinceMs: number
  readonly untilMs: number
}

/** Counts denials per key in this process and decides bans, in bounded memory. */
export class BanCounter {
  private readonly rule: BanRule
  private readonly clock: Clock
  /** One take per denial. A key is reset when its last token is taken, so this limiter never denies. */
  private readonly denials: Limiter
  private readonly banned = new BoundedMap<string, Ban>(MOST_BANNED)
  private isOpen = true

  constructor(rule: BanRule, clock: Clock) {
    this.rule = rule
    this.clock = clock
    const policy = slidingLog({ limit: rule.denials, window: rule.withinMs, name: 'denials' })
    this.denials = newMemoryLimiter(policy, {
      room: { maxKeys: MOST_COUNTED, newcomers: false, denyWhenFull: false },
      // After a step back of the clock a log denies, which would look like enough denials for a ban.
      clock: forwardClock(clock),
      hotKeys: 0,
      maxWaiting: 0,
    })
  }

  /** False after `close()`. Takes that are under way may still end later; their denials are not counted. */
  get isCounting(): boolean {
    return this.isOpen
  }

  /**
   * Counts a denied take under `policy` and returns for how many milliseconds to ban the key, 0 for no ban. Denials that do not reflect the rate of
   * the key are not counted: of costs that can never pass, in an outage, and during a ban. Call {@link publish} or {@link missed} after
   * a result above 0.
   */
  denied(key: string, cost: number, decision: Decision, policy: Policy): number {
    const { source, retryAfterMs } = decision
    if (retryAfterMs === Number.POSITIVE_INFINITY || source === 'outage') return 0
    const nowMs = this.clock.nowMs()
    const last = this.banned.get(key)
    if ((last !== undefined && nowMs < last.untilMs) || isBlocked(decision, cost, policy)) return 0
    const { allowed, remaining } = this.denials.take(key)
    if (allowed && remaining > 0) return 0
    this.denials.reset(key)
    const { forMs, factor, maxMs } = this.rule
    const before = last !== undefined && nowMs - last.sinceMs < 2 * maxMs ? last.bans : 0
    const lengthMs = Math.min(maxMs, forMs * factor ** before)
    this.banned.set(key, { bans: before + 1, sinceMs: nowMs, untilMs: nowMs + lengthMs })
    return lengthMs
  }

  /** Publishes the ban of a key for `forMs`. */
  publish(key: string, { policy }: Decision, forMs: number): void {
    const ban = this.banned.get(key)
    if (ban === undefined) return
    const event = { policy, key, forMs, bans: ban.bans }
    if (bans.hasSubscribers) bans.publish(event)
    try {
      this.rule.onBan?.(event)
    } catch (error) {
      warnProcess(error instanceof Error ? error : String(error))
    }
  }

  /** The ban that {@link denied} decided could not be stored: denials count again, and earlier bans stay remembered. */
  missed(key: string): void {
    const ban = this.banned.get(key)
    if (ban === undefined) return
    if (ban.bans === 1) this.banned.delete(key)
    else this.banned.set(key, { ...ban, bans: ban.bans - 1, untilMs: this.clock.nowMs() })
  }

  /** The key was reset. */
  forget(key: string): void {
    this.banned.delete(key)
    this.denials.reset(key)
  }

  /** `block()` was called for the key; 0 lifts its ban. Denials count again afterwards, and the next ban is still longer. */
  blocked(key: string, forMs: number): void {
    const ban = this.banned.get(key)
    if (ban === undefined) return
    const untilMs = this.clock.nowMs() + forMs
    // The longer ban stays in force.
    this.banned.set(key, { ...ban, untilMs: forMs === 0 ? untilMs : Math.max(ban.untilMs, untilMs) })
  }

  close(): void {
    this.isOpen = false
    this.banned.clear()
    this.denials.close()
  }
}

/** @throws {PolicyError} `KEY_INVALID` for several keys in one call: a denial does not name the key that caused it. */
export function checkSingle(key: Key): void {
  if (Array.isArray(key))
    throw new PolicyError('KEY_INVALID', 'key', key, 'must be one string with banAfter: with several keys, none can be banned')
}

/** Whether a denial comes from a ban, of this or another process: the tokens are available, or would refill sooner. */
function isBlocked({ remaining, retryAfterMs, parts }: Decision, cost: number, { windowMs, burst, limit, policies }: Policy): boolean {
  if (parts === undefined && remaining >= cost) return true
  const longestMs = Math.max(
    ...(policies ?? [{ windowMs, burst, limit }]).map((part) => (part.windowMs * Math.max(part.burst, part.limit)) / part.limit),
  )
  return retryAfterMs > longestMs
}
