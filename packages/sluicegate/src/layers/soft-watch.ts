import { type Awaitable, isPromise } from '../awaitable.js'
import { BoundedMap } from '../bounded-map.js'
import { type Decision, isListed } from '../decision/decision.js'
import { softLimits } from '../decision/diagnostics.js'
import { StoreError } from '../errors.js'
import { type Key, type KeysByName, keysOf } from '../key.js'
import { changedPolicy, type Policy } from '../policy/policy.js'
import { MAX_NAME_LENGTH, meantWindow } from '../policy/policy-options.js'
import { fixedWindow } from '../policy/single-policy.js'
import { checkedSoftLimits, type SoftLimit, type SoftLimitEvent, type SoftLimitOptions, type SoftLimits } from '../soft-limit-options.js'
import type { Clock } from '../time/clock.js'
import { warnProcess } from '../warn-once.js'

/** Keys and thresholds that are known to be announced: one that is forgotten is asked about again, and not announced again. */
const MOST_KNOWN = 10_000
/** After it is not known whether a threshold was announced, it is asked again. */
const AGAIN_MS = 1_000
/** Of a threshold, in the name of what announces it. */
const MOST_SHOWN = 20
/** Of a long name. */
const ENDING = 25

/** Says who announces a threshold: whoever it lets pass. */
interface Announcer {
  take(key: string): Awaitable<Decision>
  close(): void
}

/** What a {@link SoftWatch} is made of. */
export interface SoftWatchParts {
  readonly limits: SoftLimits
  readonly onSoft: ((event: SoftLimitEvent) => void) | undefined
  readonly clock: Clock
  /** Makes a limiter where the state is. */
  readonly make: (policy: Policy) => Announcer
}

/**
 * Looks at how much each answer leaves. Whoever sees a key at a threshold asks a limiter of one a window, kept where the state is: the
 * one that it lets pass announces it. So a threshold is announced at most once a window and key over all processes and threads that share a store,
 * whichever of them saw it first, whatever order answers come in, and without one more state that has to be kept in step.
 */
export class SoftWatch {
  private readonly parts: SoftWatchParts
  private readonly announcers = new Map<string, Announcer>()
  /** Until when each is known to be announced. */
  private readonly known = new BoundedMap<string, number>(MOST_KNOWN)

  constructor(parts: SoftWatchParts) {
    this.parts = parts
  }

  /**
   * The same answer, which names the policies of which the key has reached a soft limit.
   *
   * @param policy the one in force for the key.
   * @param spends whether the answer is of what may have spent, and so announces.
   */
  seen<Made extends Decision>(policy: Policy, key: Key | KeysByName, made: Made, spends: boolean): Made {
    const reached = this.reached(policy, key, made, spends)
    if (reached.length === 0) return made
    // Of a permit or a hold the object itself is the answer.
    if (Object.getPrototypeOf(made) !== Object.prototype) return Object.defineProperty(made, 'soft', { value: reached, enumerable: true })
    return { ...made, soft: reached }
  }

  close(): void {
    for (const announcer of this.announcers.values()) announcer.close()
    this.known.clear()
  }

  /** The names of the policies of which a key has reached a soft limit. */
  reached(policy: Policy, key: Key | KeysByName, decision: Decision, spends: boolean): readonly string[] {
    const names: string[] = []
    const parts = decision.parts ?? [decision]
    const levels = policy.policies ?? [policy]
    let keys: readonly string[] | undefined
    for (const [i, part] of parts.entries()) {
      const level = levels[i]
      const limits = level && this.parts.limits.get(level.name)
      if (level === undefined || limits === undefined) continue
      const used = usedOf(part, level)
      if (used < (limits[0] as SoftLimit).share * level.burst) continue
      names.push(level.name)
      keys ??= keysOf(policy, key)
      // Whoever spends announces it.
      if (!spends) continue
      for (const limit of limits) {
        if (used >= limit.share * level.burst) this.announce(policy, keys[i] as string, { level, limit, used, part })
      }
    }
    return names
  }

  private announce(policy: Policy, key: string, { level, limit: { threshold }, used, part }: Reached): void {
    const id = `${level.name}\n${threshold}\n${key}`
    const nowMs = this.parts.clock.nowMs()
    if (nowMs < (this.known.get(id) ?? Number.NEGATIVE_INFINITY)) return
    this.known.set(id, nowMs + AGAIN_MS)
    const decided = ({ allowed, source, retryAfterMs, resetAfterMs }: Decision): void => {
      if (source === 'outage') return
      this.known.set(id, nowMs + (allowed ? resetAfterMs : retryAfterMs))
      if (allowed) this.publish({ policy: level.name, key, threshold, limit: level.burst, used, decision: part })
    }
    const failed = (error: unknown): void => {
      if (!(error instanceof StoreError)) warnProcess(error instanceof Error ? error : String(error))
    }
    try {
      const answer = this.announcerOf(oncePolicy(policy, level, threshold)).take(key)
      if (isPromise(answer)) answer.then(decided).catch(failed)
      else decided(answer)
    } catch (error) {
      failed(error)
    }
  }

  private publish(event: SoftLimitEvent): void {
    if (softLimits.hasSubscribers) softLimits.publish(event)
    try {
      this.parts.onSoft?.(event)
    } catch (error) {
      warnProcess(error instanceof Error ? error : String(error))
    }
  }

  private announcerOf(policy: Policy): Announcer {
    const known = this.announcers.get(policy.name)
    if (known !== undefined) return known
    const made = this.parts.make(policy)
    this.announcers.set(policy.name, made)
    return made
  }
}

/** A part of an answer that is at a threshold. */
interface Reached {
  readonly level: Policy
  readonly limit: SoftLimit
  readonly used: number
  readonly part: Decision
}

/** A policy of one a window, of the same windows. Levels of several policies may have one name. */
function oncePolicy(policy: Policy, level: Policy, threshold: string): Policy {
  const end = ` soft ${threshold.slice(0, MOST_SHOWN)}`
  const room = MAX_NAME_LENGTH - end.length
  const half = Math.floor((room - 1) / 2)
  const own = policy === level ? shortened(level.name, room) : `${shortened(policy.name, half)} ${shortened(level.name, half)}`
  const name = `${own}${end}`
  if (level.algorithm === 'fixed-window') return changedPolicy(level, { name, limit: 1, burst: 1 })
  return fixedWindow({ limit: 1, window: meantWindow(level.windowMs), name })
}

/** Long names often differ at their end. */
function shortened(name: string, room: number): string {
  return name.length <= room ? name : `${name.slice(0, room - ENDING)}${name.slice(-ENDING)}`
}

/** Tokens spent and held; none of a key that is full, or that is on a list, and what is not known in an outage. */
function usedOf(decision: Decision, { burst }: Policy): number {
  const { remaining, resetAfterMs, source, spent } = decision
  if (source === 'outage' || isListed(decision) || (resetAfterMs === 0 && remaining === 0)) return 0
  return spent ?? burst - remaining
}

/**
 * Soft limits for whoever decides without a limiter of the library in between, as the service does: `seen` looks at each answer.
 *
 * @param make makes a limiter for the policy that it is given, where the state is: what that lets pass is announced.
 * @throws {PolicyError} `OPTION_INVALID`
 * @example
 * const watch = watchSoftLimits(policy, { soft: ['80%'], onSoft: console.log, clock, make: (once) => createLimiter(once) })
 * const decision = watch.seen(policy, key, limiter.take(key), true)
 */
export function watchSoftLimits(
  policy: Policy,
  { clock, make, ...options }: SoftLimitOptions & Pick<SoftWatchParts, 'clock' | 'make'>,
): Pick<SoftWatch, 'seen' | 'close'> {
  return new SoftWatch({ limits: checkedSoftLimits(options, policy) ?? new Map(), onSoft: options.onSoft, clock, make })
}
