import { type Awaitable, chained, isPromise } from '../awaitable.js'
import { type Decision, isListed } from '../decision/decision.js'
import { softLimits } from '../decision/diagnostics.js'
import { StoreError } from '../errors.js'
import { heldAs } from '../holds/held-as.js'
import type { OpenOptions } from '../holds/hold.js'
import type { AnyHold } from '../holds/metered.js'
import type { Key } from '../key.js'
import type { LimiterVerbs } from '../limiter.js'
import { changedPolicy, type Policy } from '../policy/policy.js'
import { MAX_NAME_LENGTH, meantWindow } from '../policy/policy-options.js'
import { fixedWindow } from '../policy/single-policy.js'
import type { SoftLimit, SoftLimitEvent, SoftLimits } from '../soft-limit-options.js'
import type { Clock } from '../time/clock.js'
import { warnProcess } from '../warn-once.js'
import type { InnerLimiter } from './layer.js'
import { WITHIN } from './shadow-limiter.js'
import { type Deed, WatchingLayer } from './watching-layer.js'

/** Keys and thresholds that are known to be announced: one that is forgotten is asked about again, and not announced again. */
const MOST_KNOWN = 10_000
/** After it is not known whether a threshold was announced, it is asked again. */
const AGAIN_MS = 1_000

/** What a {@link SoftLimiter} is made of. */
export interface SoftLimiterParts {
  readonly limits: SoftLimits
  readonly onSoft: ((event: SoftLimitEvent) => void) | undefined
  readonly clock: Clock
  /** Makes a limiter where the inner one keeps its state. */
  readonly make: (policy: Policy) => LimiterVerbs
}

/**
 * Soft limits: looks at how much each answer leaves. Whoever sees a key at a threshold asks a limiter of one a window, kept where the state is: the
 * one that it lets pass announces it. So a threshold is announced at most once a window and key over all processes and threads that share a store,
 * whichever of them saw it first, whatever order answers come in, and without one more state that has to be kept in step.
 */
export class SoftLimiter<Answer extends Decision> extends WatchingLayer<Answer> {
  private readonly parts: SoftLimiterParts
  private readonly announcers = new Map<string, LimiterVerbs>()
  /** Until when each is known to be announced. */
  private readonly known = new Map<string, number>()

  constructor(inner: InnerLimiter<Answer>, parts: SoftLimiterParts) {
    super(inner)
    this.parts = parts
    // The middleware hides the denials of a shadow limiter itself.
    const within = (inner as { readonly [WITHIN]?: InnerLimiter<Answer> })[WITHIN]
    if (within !== undefined) Object.defineProperty(this, WITHIN, { value: new SoftLimiter(within, parts) })
  }

  protected seen<Made extends Decision>(key: Key, made: Made, deed: Deed): Made {
    const reached = this.reached(key, made, deed)
    if (reached.length === 0) return made
    // Of a permit or a hold the object itself is the answer.
    if (Object.getPrototypeOf(made) !== Object.prototype) return Object.defineProperty(made, 'soft', { value: reached, enumerable: true })
    return { ...made, soft: reached }
  }

  protected opened(key: Key, hold: AnyHold, _options: OpenOptions | undefined): AnyHold {
    const reached = this.reached(key, hold, 'take')
    const decision = reached.length === 0 ? hold : { ...hold, soft: reached }
    const close = (cost?: number): Decision =>
      chained(hold.close(cost) as Awaitable<Decision>, (made) => this.seen(key, made, 'take')) as Decision
    return heldAs(hold, decision, { close })
  }

  override close(): void {
    super.close()
    for (const announcer of this.announcers.values()) announcer.close()
    this.known.clear()
  }

  /** The names of the policies of which a key has reached a soft limit. */
  private reached(key: Key, decision: Decision, deed: Deed): readonly string[] {
    const names: string[] = []
    try {
      const policy = this.policyOf(key)
      const policies = policy.policies ?? [policy]
      const parts = decision.parts ?? [decision]
      let keys: readonly string[] | undefined
      for (const [i, part] of parts.entries()) {
        const level = policies[i]
        const limits = level && this.parts.limits.get(level.name)
        if (level === undefined || limits === undefined) continue
        const used = usedOf(part, level)
        if (used < (limits[0] as SoftLimit).share * level.burst) continue
        names.push(level.name)
        keys ??= this.keysOf(key)
        // Whoever spends announces it.
        if (deed === 'look') continue
        for (const limit of limits) {
          if (used >= limit.share * level.burst) this.announce(level, keys[i] as string, limit, { used, decision: part })
        }
      }
    } catch (error) {
      // The limiter was closed meanwhile: its answer stands.
      if (!(error instanceof StoreError)) throw error
    }
    return names
  }

  private announce(level: Policy, key: string, { threshold }: SoftLimit, at: { readonly used: number; readonly decision: Decision }): void {
    const id = `${level.name}\n${threshold}\n${key}`
    const nowMs = this.parts.clock.nowMs()
    if (nowMs < (this.known.get(id) ?? Number.NEGATIVE_INFINITY)) return
    this.note(id, nowMs + AGAIN_MS)
    const decided = ({ allowed, source, retryAfterMs, resetAfterMs }: Decision): void => {
      if (source === 'outage') return
      this.note(id, nowMs + (allowed ? resetAfterMs : retryAfterMs))
      if (allowed) this.publish({ policy: level.name, key, threshold, limit: level.burst, ...at })
    }
    const failed = (error: unknown): void => {
      if (!(error instanceof StoreError)) warnProcess(error instanceof Error ? error : String(error))
    }
    try {
      const answer = this.announcerOf(level, threshold).take(key)
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

  private announcerOf(level: Policy, threshold: string): LimiterVerbs {
    const policy = oncePolicy(level, threshold)
    const known = this.announcers.get(policy.name)
    if (known !== undefined) return known
    const made = this.parts.make(policy)
    this.announcers.set(policy.name, made)
    return made
  }

  private note(id: string, untilMs: number): void {
    this.known.delete(id)
    if (this.known.size >= MOST_KNOWN) this.known.delete(this.known.keys().next().value as string)
    this.known.set(id, untilMs)
  }
}

/** A policy of one a window, of the same windows. */
function oncePolicy(level: Policy, threshold: string): Policy {
  const end = ` soft ${threshold}`
  const name = `${level.name.slice(0, MAX_NAME_LENGTH - end.length)}${end}`
  if (level.algorithm === 'fixed-window') return changedPolicy(level, { name, limit: 1, burst: 1 })
  return fixedWindow({ limit: 1, window: meantWindow(level.windowMs), name })
}

/** Tokens spent and held; none of a key that is full, or that is on a list, and what is not known in an outage. */
function usedOf(decision: Decision, { burst }: Policy): number {
  const { remaining, resetAfterMs, source, spent } = decision
  if (source === 'outage' || isListed(decision) || (resetAfterMs === 0 && remaining === 0)) return 0
  return spent ?? burst - remaining
}
