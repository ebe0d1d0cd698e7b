import { createLimiter } from '../../../sluicegate/dist/create-limiter.js'
import type { Permit } from '../../../sluicegate/dist/decision/permit.js'
import type { Reservation } from '../../../sluicegate/dist/decision/reservation.js'
import { allOf } from '../../../sluicegate/dist/policy/all-of.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { CommandRunner } from '../../../sluicegate/dist/redis/command-runner.js'
import { scriptedStore } from '../../../sluicegate/dist/redis/redis.js'
import { RedisKeys } from '../../../sluicegate/dist/redis/redis-keys.js'
import { RedisScripts } from '../../../sluicegate/dist/redis/redis-scripts.js'
import type { SharedLimiter } from '../../../sluicegate/dist/shared/shared-limiter.js'
import { manualClock } from '../../../sluicegate/dist/time/clock.js'
import { policyOf } from '../kit.js'
import type { PolicySpec } from '../oracle/oracle.js'
import { GivenTime } from '../redis/given-time.js'
import { type Answer, bookingAnswer, numbered, plainAnswer } from '../replay.js'
import type { Step } from '../sequences/draws.js'

/** Longer than any answer of a running server takes. */
const TIMEOUT_MS = 60_000

/** A policy whose names do not say its numbers, nor do those of its parts. */
export function namedPolicy(spec: PolicySpec): Policy {
  if (spec.algorithm !== 'all-of') return policyOf(spec, { name: 'policy' })
  return allOf(
    spec.parts.map((part, i) => policyOf(part, { name: `part ${i}` })),
    { name: 'policy' },
  )
}

/** A limiter, and how to set its time. */
export interface TimedLimiter {
  readonly limiter: SharedLimiter
  set(ms: number): void
}

/** An exact limiter over the scripts at given times. */
export function exactLimiter(runner: CommandRunner, prefix: string, policy: Policy, startMs = 0): TimedLimiter {
  const time = new GivenTime(runner)
  const clock = manualClock(0)
  const limiter = createLimiter(policy, {
    store: scriptedStore(new RedisScripts(time, new RedisKeys(prefix))),
    mode: 'exact',
    outage: 'closed',
    timeout: TIMEOUT_MS,
    clock,
  })
  const set = (ms: number): void => {
    time.nowUs = Math.round(ms * 1000)
    clock.set(ms)
  }
  if (startMs > 0) set(startMs)
  return { limiter, set }
}

/** Plays the steps of a sequence on an exact limiter of a fleet. */
export class FleetReplay {
  private readonly limiter: SharedLimiter
  private readonly set: (ms: number) => void
  private readonly bookings: Reservation<'later'>[] = []
  private readonly permits: Permit<'later'>[] = []
  private readonly settled = new Set<Reservation<'later'>>()

  constructor({ limiter, set }: TimedLimiter) {
    this.limiter = limiter
    this.set = set
  }

  /** Undefined where there is none to compare. */
  async answer(step: Step): Promise<Answer | undefined> {
    const { limiter } = this
    const { key } = step
    this.set(step.atMs)
    switch (step.verb) {
      case 'take': {
        const decision = await limiter.take(key, step.cost)
        this.permits.push(decision as Permit<'later'>)
        return decision
      }
      case 'update':
        limiter.update(namedPolicy(step.policy))
        return undefined
      case 'reserve': {
        const booking = await limiter.reserve(key, step.cost)
        this.bookings.push(booking)
        return bookingAnswer(booking)
      }
      case 'settle':
        return this.settle(step.booking, (booking) => booking.settle(step.actual))
      case 'cancel':
        return this.settle(step.booking, (booking) => booking.cancel())
      case 'release':
      case 'heartbeat': {
        const permit = numbered(this.permits, step.permit)
        return permit === undefined || !('release' in permit) ? undefined : { allowed: await permit[step.verb]() }
      }
      default:
        return plainAnswer(limiter, step)
    }
  }

  close(): void {
    this.limiter.close()
  }

  private async settle(number: number, settle: (booking: Reservation<'later'>) => Promise<Answer>): Promise<Answer | undefined> {
    const booking = numbered(this.bookings, number)
    if (booking === undefined) return undefined
    const answer = await settle(booking)
    if (!booking.allowed || this.settled.has(booking)) return undefined
    this.settled.add(booking)
    return answer
  }
}
