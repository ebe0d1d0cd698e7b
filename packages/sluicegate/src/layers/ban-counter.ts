import type { BanRule } from '../ban-options.js'
import type { Clock } from '../clock.js'
import type { Decision } from '../decision.js'
import { forwardClock } from '../default-clock.js'
import { bans } from '../diagnostics.js'
import { PolicyError } from '../errors.js'
import type { Key, Limiter } from '../limiter.js'
import { newMemoryLimiter } from '../memory/memory-limiters.js'
import type { Policy } from '../policy/policy.js'
import { slidingLog } from '../policy/window-policy.js'

/** Keys whose denials are counted at once: beyond that the one with the fewest is forgotten. */
const MOST_COUNTED = 20_000
/** Keys whose bans are remembered: beyond that the one that was banned longest ago is forgotten. Its block stands all the same. */
const MOST_BANNED = 20_000

interface Ban {
  readonly bans: number
  readonly sinceMs: number
  readonly untilMs: number
}

/** Counts denials of keys in this process, and says when one is to be banned. Memory is bounded whatever keys come. */
export class BanCounter {
  private readonly rule: BanRule
  private readonly clock: Clock
  /** Takes of it are denials of the key. It is reset when the last token was taken, so that it never denies anything itself. */
  private readonly denials: Limiter
  /** In the order of their bans. */
  private readonly banned = new Map<string, Ban>()
  private isOpen = true

  constructor(rule: BanRule, clock: Clock) {
    this.rule = rule
    this.clock = clock
    const policy = slidingLog({ limit: rule.denials, window: rule.withinMs, slotBytes: 4, name: 'denials' })
    this.denials = newMemoryLimiter(policy, {
      room: { maxKeys: MOST_COUNTED, newcomers: false, denyWhenFull: false },
      // A log is closed after a step back, which would look like as many denials as ban a key.
      clock: forwardClock(clock),
      hotKeys: 0,
      maxWaiters: 0,
    })
  }

  /** False once it is closed, which ends no take that is on its way: what comes then is counted no more. */
  get isCounting(): boolean {
    return this.isOpen
  }

  /**
   * A take of a key was denied under `policy`: for how many milliseconds it is to be banned, 0 for not at all. Not counted are denials that say
   * nothing of how often the key comes: of what can never pass, of an outage, and while the key is blocked. Next comes
   * {@link tell} or {@link missed}.
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
    this.note(key, { bans: before + 1, sinceMs: nowMs, untilMs: nowMs + lengthMs })
    return lengthMs
  }

  /** The key is banned for so long: those who listen hear of it. */
  tell(key: string, { policy }: Decision, forMs: number): void {
    const ban = this.banned.get(key)
    if (ban === undefined) return
    const event = { policy, key, forMs, bans: ban.bans }
    if (bans.hasSubscribers) bans.publish(event)
    try {
      this.rule.onBan?.(event)
    } catch (error) {
      globalThis.process?.emitWarning?.(error instanceof Error ? error : String(error))
    }
  }

  /** The ban that {@link denied} has just decided could not be put in force: denials count again, and earlier bans are remembered. */
  missed(key: string): void {
    const ban = this.banned.get(key)
    if (ban === undefined) return
    if (ban.bans === 1) this.banned.delete(key)
    else this.banned.set(key, { ...ban, bans: ban.bans - 1, untilMs: this.clock.nowMs() })
  }

  /** The key is as good as new. */
  forget(key: string): void {
    this.banned.delete(key)
    this.denials.reset(key)
  }

  /** The key is blocked by hand, for 0 to lift its ban: denials count again after that, and the next ban is longer all the same. */
  blocked(key: string, forMs: number): void {
    const ban = this.banned.get(key)
    if (ban === undefined) return
    const untilMs = this.clock.nowMs() + forMs
    // A shorter block leaves the longer one in force.
    this.banned.set(key, { ...ban, untilMs: forMs === 0 ? untilMs : Math.max(ban.untilMs, untilMs) })
  }

  close(): void {
    this.isOpen = false
    this.banned.clear()
    this.denials.close()
  }

  private note(key: string, ban: Ban): void {
    this.banned.delete(key)
    if (this.banned.size >= MOST_BANNED) {
      for (const oldest of this.banned.keys()) {
        this.banned.delete(oldest)
        break
      }
    }
    this.banned.set(key, ban)
  }
}

/** @throws {PolicyError} `KEY_INVALID` where several keys come in one call: which of them is it that is denied too often? */
export function checkSingle(key: Key): void {
  if (Array.isArray(key))
    throw new PolicyError('KEY_INVALID', 'key', key, 'must be one string with banAfter: of several none can be banned')
}

/** Denied though the tokens are there, or for longer than tokens take to come back: blocked, here or by another process. */
function isBlocked({ remaining, retryAfterMs, parts }: Decision, cost: number, { windowMs, burst, limit, policies }: Policy): boolean {
  if (parts === undefined && remaining >= cost) return true
  const longestMs = Math.max(
    ...(policies ?? [{ windowMs, burst, limit }]).map((part) => (part.windowMs * Math.max(part.burst, part.limit)) / part.limit),
  )
  return retryAfterMs > longestMs
}
