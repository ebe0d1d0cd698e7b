import type { Decision, Limiter } from 'sluicegate'
import { changed, type Fault } from './fault.js'

type Spoil = (limiter: Limiter) => Partial<Limiter>

function fault(parts: Fault['parts'], spoil: Spoil): Fault {
  return { algorithm: 'token bucket', parts, spoil }
}

/** Faults shown on the token bucket, though any algorithm may have most of them. */
export const RATE_FAULTS: Readonly<Record<string, Fault>> = {
  'waits floored to seconds': fault(['time'], (limiter) => ({
    take: (key, cost) => changed(limiter.take(key, cost), ({ retryAfterMs }) => ({ retryAfterMs: Math.floor(retryAfterMs / 1000) * 1000 })),
  })),
  'waits of one millisecond too much': fault(['budget'], (limiter) => ({
    take: (key, cost) =>
      changed(limiter.take(key, cost), ({ allowed, retryAfterMs }) => ({ retryAfterMs: allowed ? 0 : retryAfterMs + 1 })),
  })),
  'one extra request each burst': fault(['verbs'], (limiter) => ({
    take(key, cost) {
      const decision = limiter.take(key, cost)
      return decision.remaining === 0 && !decision.allowed && decision.resetAfterMs === 1000
        ? { ...decision, allowed: true, retryAfterMs: 0 }
        : decision
    },
  })),
  'denied requests that add their cost': fault(['budget'], (limiter) => ({
    take(key, cost) {
      const decision = limiter.take(key, cost)
      if (!decision.allowed) limiter.penalize(key, cost ?? 1)
      return decision
    },
  })),
  'peeks that take': fault(['verbs'], (limiter) => ({ peek: (key, cost) => limiter.take(key, cost) })),
  'a shared record for all answers': fault(['verbs'], (limiter) => {
    const shared = {} as Decision
    return { take: (key, cost) => Object.assign(shared, limiter.take(key, cost)) }
  }),
  'keys joined by their first unit': fault(['keys'], (limiter) => ({ take: (key, cost) => limiter.take(String(key).slice(0, 1), cost) })),
  'keys that lose their lone surrogates': fault(['keys'], (limiter) => ({
    take: (key, cost) => limiter.take(new TextDecoder().decode(new TextEncoder().encode(String(key))), cost),
  })),
  'the burst shown as the limit': fault([], (limiter) => ({
    take: (key, cost) => changed(limiter.take(key, cost), () => ({ limit: limiter.policy.burst })),
  })),
  'a timer for each key': fault(['table'], (limiter) => ({
    take(key, cost) {
      setTimeout(() => undefined, 1).unref()
      return limiter.take(key, cost)
    },
  })),
  'the shortest block wins': fault(['blocks'], (limiter) => ({
    block(key, duration) {
      limiter.block(key, 0)
      return limiter.block(key, duration)
    },
  })),
  'an update that resets': fault(['updates'], (limiter) => ({
    update(policy) {
      limiter.update(policy)
      limiter.reset('k')
    },
  })),
  'an outage answered as a denial': fault(['misuse'], (limiter) => ({
    take(key, cost) {
      try {
        return limiter.take(key, cost)
      } catch {
        return { allowed: false, limit: 1, remaining: 0, retryAfterMs: 1, resetAfterMs: 1, policy: 'x', source: 'outage' }
      }
    },
  })),
  'a reservation that gives all of it back, though later bookings rely on it': fault(['reserving'], (limiter) => ({
    reserve(key, cost) {
      const reservation = limiter.reserve(key, cost)
      return { ...reservation, settle: (actual) => reservation.settle(actual), cancel: () => limiter.refund(key, cost) }
    },
  })),
  'a reservation that is settled again and again': fault(['reserving'], (limiter) => ({
    reserve(key, cost) {
      const reservation = limiter.reserve(key, cost)
      return { ...reservation, cancel: () => reservation.cancel(), settle: (actual) => limiter.refund(key, Math.max(1, cost - actual)) }
    },
  })),
  'a reservation that costs nothing until it is settled': fault(['reserving'], (limiter) => ({
    reserve(key, cost) {
      const decision = limiter.peek(key, cost)
      const settle = (actual: number): Decision => (actual > 0 ? limiter.penalize(key, actual) : limiter.peek(key))
      return { allowed: decision.allowed, waitMs: decision.retryAfterMs, decision, settle, cancel: () => limiter.peek(key) }
    },
  })),
}
