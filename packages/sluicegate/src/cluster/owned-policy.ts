import { defaultClock } from '../default-clock.js'
import { leaseUsOf } from '../lease/leasing.js'
import type { Limiter } from '../limiter.js'
import { MemoryAllOfLimiter } from '../memory/memory-all-of.js'
import { checkChange } from '../policy/checked-policy.js'
import { changedPolicy, type Policy } from '../policy/policy.js'
import { type Clock, tickerOf } from '../time/clock.js'
import type { BookingService } from '../waiting/reserving.js'
import { horizonMsFor, keepRoomForLeases, policyUnderLease } from './memory-lease.js'

/** The limiter in this process's memory: the true state. */
export type PrimaryLimiter = Limiter & BookingService

/** What {@link OwnedPolicy} is made of. */
interface OwnedParts {
  /** How far ahead tokens are leased; 0 for not at all. */
  readonly longestMs: number
  readonly clock: Clock | undefined
  /** @param kept the policy under which the state is kept. */
  readonly make: (kept: Policy, clock: Clock) => Limiter
}

/** A policy whose state this process owns, and leases to others. */
export class OwnedPolicy {
  policy: Policy
  readonly limiter: PrimaryLimiter
  readonly nowUs: () => number
  private readonly longestMs: number

  constructor(policy: Policy, { longestMs, clock = defaultClock(policy), make }: OwnedParts) {
    this.policy = policy
    this.longestMs = longestMs
    // Without layers a limiter also makes its reservations.
    this.limiter = make(this.kept(policy), clock) as PrimaryLimiter
    for (const [i, part] of this.parts.entries()) {
      keepRoomForLeases(part, () => ({ policy: this.policy.policies?.[i] ?? this.policy, leaseUs: this.leaseUs }))
    }
    const ticker = tickerOf(clock)
    this.nowUs = () => ticker.read()
  }

  /** 0 where nothing is leased. */
  get horizonMs(): number {
    return horizonMsFor(this.policy, this.longestMs)
  }

  get leaseUs(): number {
    return leaseUsOf(this.horizonMs)
  }

  get parts(): readonly PrimaryLimiter[] {
    return partsOf(this.limiter)
  }

  /** @throws {PolicyError} */
  update(policy: Policy): void {
    const next = changedPolicy(policy, { name: this.policy.name })
    checkChange(this.policy, next)
    this.limiter.update(this.kept(next))
    this.policy = next
  }

  private kept(policy: Policy): Policy {
    return policyUnderLease(policy, leaseUsOf(horizonMsFor(policy, this.longestMs)))
  }
}

/** Of `allOf` the limiter of each policy. */
export function partsOf(limiter: PrimaryLimiter): readonly PrimaryLimiter[] {
  return limiter instanceof MemoryAllOfLimiter ? limiter.parts : [limiter]
}
