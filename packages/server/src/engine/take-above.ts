import type { Decision, Key, Permit, Policy } from 'sluicegate'
import { type Awaitable, whenDone } from './awaitable.js'
import type { EngineLimiter } from './engine-limiter.js'
import { passed } from './outcome.js'

/**
 * A take that leaves `floor` tokens, or none. In memory nothing runs between the look and the take. At a store a take that came too close to the
 * floor, because of others in between, is given back.
 */
export function takeAbove(limiter: EngineLimiter, key: Key, cost: number, floor: number): Awaitable<Decision> {
  if (floor === 0) return limiter.take(key, cost)
  if (limiter.takeAbove !== undefined) return limiter.takeAbove(key, cost, floor)
  return whenDone(limiter.peek(key, cost + floor), (seen) => {
    if (!seen.allowed) return seen
    // In memory nothing comes in between; a permit is its own receipt.
    if (!limiter.isShared || holdsPermits(limiter.policy)) {
      return whenDone(limiter.take(key, cost), (taken) => {
        if (!taken.allowed || isAbove(taken, floor) || !('release' in taken)) return taken
        return whenDone<unknown, Decision>(unlessLost((taken as Permit).release()), () => refusedAgain(taken))
      })
    }
    // Reserved, as what was charged has to go back there, also when its window is over by then.
    return whenDone(limiter.reserve(key, cost), (reservation) => {
      const { allowed, waitMs, decision } = reservation
      if (!allowed) return decision
      if (waitMs === 0 && isAbove(decision, floor)) return passed(decision)
      return whenDone<unknown, Decision>(unlessLost(reservation.cancel()), () => refusedAgain(decision))
    })
  }) as Awaitable<Decision>
}

/** The denial of a take that was given back, since it came too close to what is kept for others. */
function refusedAgain({ limit, remaining, resetAfterMs, policy, source }: Decision): Decision {
  return { allowed: false, limit, remaining, retryAfterMs: 1, resetAfterMs, policy, source }
}

function isAbove({ remaining, source }: Decision, floor: number): boolean {
  return remaining >= floor || source === 'outage'
}

/** If the store fails now, the tokens stay charged: fewer pass, never more. */
function unlessLost(given: unknown): unknown {
  return given instanceof Promise ? given.catch(() => undefined) : given
}

function holdsPermits({ algorithm, policies = [] }: Policy): boolean {
  return algorithm === 'concurrency' || policies.some(holdsPermits)
}
