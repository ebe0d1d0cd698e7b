import { BoundedMap } from '../bounded-map.js'
import { makeLimiter } from '../create-limiter.js'
import { keysUnder } from '../key.js'
import type { Key, LimiterOptions } from '../limiter.js'
import type { MemoryLimiter } from '../memory/memory-limiter.js'
import { fullAfterMs, numbersOfDecision, unplanned } from '../owner/message.js'
import { type OwnedLimiter, OwnedPolicy } from '../owner/owned-policy.js'
import { OwnerSession } from '../owner/owner-session.js'
import type { PlanFor } from '../plan-options.js'
import type { Policy } from '../policy/policy.js'
import { holdsIn, StoredHolds, withHolds } from '../shared/holds/stored-holds.js'
import type { Clock } from '../time/clock.js'
import { emitWarning } from '../warn-once.js'
import type { StoredKey, StoredKeys } from './stored-keys.js'

/** The alarm is set for whole seconds. */
const WHOLE_MS = 1000
const NOTHING = new Uint8Array(0)
/** Limiters that one object remembers, each an isolate of a Worker. Of those forgotten, permits and reservations end by themselves. */
const MOST_SENDERS = 1_000
/** Keys that are stored and no longer in memory, beside as many as are. */
const MOST_FORGOTTEN = 16

/** How an object holds a policy. */
export interface ObjectPolicyOptions extends Pick<LimiterOptions, 'onFull'> {
  readonly maxKeys: number
  /** 0 for no leases. */
  readonly mostHorizonMs: number
  readonly clock?: Clock | undefined
}

/** The true state of one policy, in the memory of an object. */
export class ObjectPolicy extends OwnedPolicy {
  /** The time at which all its keys are full. */
  newAtMs = 0
  /** Where its keys are stored. */
  readonly stored: StoredKeys
  /** Of the limiters that use it, by their ids; the last used at the end. */
  private readonly sessions = new BoundedMap<string, OwnerSession>(MOST_SENDERS)

  /** @param entries what is stored. */
  constructor(policy: Policy, options: ObjectPolicyOptions, stored: StoredKeys, entries: ReadonlyMap<string, unknown>) {
    const { mostHorizonMs, clock, ...room } = options
    // A budget that keys without room share would not outlive the memory.
    const make = (kept: Policy, own: Clock, planFor: PlanFor): OwnedLimiter =>
      makeLimiter(kept, { ...room, clock: own }, { newcomers: false, planFor }) as OwnedLimiter
    // A timer would keep the object in memory.
    super(policy, { mostHorizonMs, clock, isTimed: false, make })
    this.stored = stored
    this.load(stored.read(entries))
  }

  /** The answers to the requests of one limiter; what they change is written to {@link stored}, and not flushed yet. */
  answers(sender: string, requests: readonly unknown[]): readonly (readonly unknown[])[] {
    const answers = this.sessionOf(sender).answers(requests)
    this.write(requests, answers)
    return answers
  }

  private sessionOf(sender: string): OwnerSession {
    const { sessions } = this
    const session = sessions.get(sender) ?? new OwnerSession(this)
    sessions.set(sender, session)
    return session
  }

  /** Writes the keys of requests that were carried out and may have changed them, and notes when they will be full. */
  private write(requests: readonly unknown[], answers: readonly (readonly unknown[])[]): void {
    const { stored } = this
    // Invalid requests have no answers.
    const isEach = answers.length === requests.length
    for (const [i, request] of requests.entries()) {
      if (!Array.isArray(request)) continue
      const [[, verb, key, , , part]] = unplanned(request)
      const [, ...answer] = isEach ? (answers[i] as readonly unknown[]) : []
      const isDenied = verb === 'take' && answer[0] === 0
      if (verb === 'peek' || isDenied) continue
      for (const [at, own] of this.keysOf(key)) if (verb !== 'lease' || at === part) this.writeKey(this.keyParts[at] as MemoryLimiter, own)
    }
    // Others have the places of keys that were forgotten.
    if (stored.size <= 2 * this.limiter.stats().keys + MOST_FORGOTTEN) return
    for (const { policy, key } of stored.keys()) {
      const part = this.partOf(policy)
      if (part === undefined) stored.write({ policy, key })
      else this.writeKey(part, key)
    }
  }

  /** With what is granted of it, and with its plan. */
  private writeKey(part: MemoryLimiter, key: string): void {
    const place = this.placeOf(part, key)
    const own = place.saveKey(key)
    const holds = this.holds.of(part, key)
    const saved = holds === undefined ? own : withHolds(own ?? NOTHING, holds)
    this.stored.write({ policy: part.policyOf().name, key, saved, ...(place !== part && { plan: place.policyOf() }) })
    this.noteFull(place, key)
  }

  /** Those that a request names, by the places of their policies; none where it was refused, and changed nothing. */
  private keysOf(key: unknown): Iterable<readonly [number, string]> {
    try {
      return keysUnder(this.policy, key as Key).entries()
    } catch {
      return []
    }
  }

  private noteFull(part: MemoryLimiter, key: string): void {
    // A lease still holds tokens when the key is full again.
    const atMs = (this.nowUs() + this.leaseUs) / 1000 + (fullAfterMs(numbersOfDecision(part.peek(key))) ?? 0)
    this.newAtMs = Math.max(this.newAtMs, Math.ceil(atMs / WHOLE_MS) * WHOLE_MS)
  }

  private load(stored: readonly StoredKey[]): void {
    let lost = 0
    for (const { policy, key, saved, plan } of stored) {
      const part = this.partOf(policy)
      const place = part && this.placeUnder(part, key, plan)
      const [own, holds] = ownAndHoldsIn(saved)
      if (place?.loadKey(key, own) === true) {
        this.holds.load(part as MemoryLimiter, key, holds)
        this.noteFull(place, key)
      } else lost++
    }
    if (lost === 0) return
    const why = 'they were stored under another algorithm, under a policy of another name, or by another version'
    emitWarning('SLUICEGATE_POLICY', `${lost} keys of ${this.policy.name} begin anew in a Durable Object: ${why}`)
  }

  /** Under a plan that a key was stored with; one that is no policy any more is forgotten. */
  private placeUnder(part: MemoryLimiter, key: string, plan: unknown): MemoryLimiter {
    if (plan === undefined) return part
    const plans = this.keyParts.map((each) => (each === part ? plan : null))
    try {
      return this.under(plans, () => this.placeOf(part, key))
    } catch {
      return part
    }
  }

  private partOf(policy: string): MemoryLimiter | undefined {
    return this.keyParts.find((part) => part.policyOf().name === policy)
  }

  private get keyParts(): readonly MemoryLimiter[] {
    return this.parts as unknown as readonly MemoryLimiter[]
  }
}

/** A stored key, and what is held of it; one that is cut is refused by the core. */
function ownAndHoldsIn(saved: Uint8Array): readonly [own: Uint8Array, holds: StoredHolds] {
  try {
    return holdsIn(saved)
  } catch {
    return [saved, new StoredHolds()]
  }
}
