import { createLimiter, type Decision, type Limiter } from 'sluicegate'
import { ALGORITHMS } from './conformance/algorithms.js'
import type { MakeLimiter } from './conformance/fixture.js'
import { conformance } from './conformance.js'

// A program: runs the conformance suite over a limiter with the fault that the first argument names. It must fail.

/** Faults that other limiters have had, each as what it makes of a limiter. */
const FAULTS: Readonly<Record<string, (limiter: Limiter) => Partial<Limiter>>> = {
  none: () => ({}),
  'waits floored to seconds': (limiter) => ({
    take: (key, cost) => changed(limiter.take(key, cost), ({ retryAfterMs }) => ({ retryAfterMs: Math.floor(retryAfterMs / 1000) * 1000 })),
  }),
  'waits of one millisecond too much': (limiter) => ({
    take: (key, cost) =>
      changed(limiter.take(key, cost), ({ allowed, retryAfterMs }) => ({ retryAfterMs: allowed ? 0 : retryAfterMs + 1 })),
  }),
  'one extra request each burst': (limiter) => ({
    take(key, cost) {
      const decision = limiter.take(key, cost)
      return decision.remaining === 0 && !decision.allowed && decision.resetAfterMs === 1000
        ? { ...decision, allowed: true, retryAfterMs: 0 }
        : decision
    },
  }),
  'denied requests that add their cost': (limiter) => ({
    take(key, cost) {
      const decision = limiter.take(key, cost)
      if (!decision.allowed) limiter.penalize(key, cost ?? 1)
      return decision
    },
  }),
  'peeks that take': (limiter) => ({ peek: (key, cost) => limiter.take(key, cost) }),
  'a shared record for all answers': (limiter) => {
    const shared = {} as Decision
    return { take: (key, cost) => Object.assign(shared, limiter.take(key, cost)) }
  },
  'keys joined by their first unit': (limiter) => ({ take: (key, cost) => limiter.take(String(key).slice(0, 1), cost) }),
  'keys that lose their lone surrogates': (limiter) => ({
    take: (key, cost) => limiter.take(new TextDecoder().decode(new TextEncoder().encode(String(key))), cost),
  }),
  'the burst shown as the limit': (limiter) => ({
    take: (key, cost) => changed(limiter.take(key, cost), () => ({ limit: limiter.policy.burst })),
  }),
  'a timer for each key': (limiter) => ({
    take(key, cost) {
      setTimeout(() => undefined, 1).unref()
      return limiter.take(key, cost)
    },
  }),
  'the shortest block wins': (limiter) => ({
    block(key, duration) {
      limiter.block(key, 0)
      return limiter.block(key, duration)
    },
  }),
  'an update that resets': (limiter) => ({
    update(policy) {
      limiter.update(policy)
      limiter.reset('k')
    },
  }),
  'an outage answered as a denial': (limiter) => ({
    take(key, cost) {
      try {
        return limiter.take(key, cost)
      } catch {
        return { allowed: false, limit: 1, remaining: 0, retryAfterMs: 1, resetAfterMs: 1, policy: 'x', source: 'outage' }
      }
    },
  }),
}

function changed(decision: Decision, change: (decision: Decision) => Partial<Decision>): Decision {
  return { ...decision, ...change(decision) }
}

function faulty(fault: string): MakeLimiter {
  const wrongly = FAULTS[fault]
  if (wrongly === undefined) throw new RangeError(`no fault "${fault}"`)
  return (policy, options) => {
    const limiter = createLimiter(policy, options)
    const wrong = wrongly(limiter)
    return new Proxy(limiter, {
      get(target, name) {
        const value = Reflect.get(name in wrong ? wrong : target, name, name in wrong ? wrong : target) as unknown
        return typeof value === 'function' ? value.bind(name in wrong ? wrong : target) : value
      },
    })
  }
}

const [, , fault] = process.argv
if (fault === undefined) console.log(JSON.stringify(Object.keys(FAULTS)))
else conformance('faulty', faulty(fault), { algorithms: ALGORITHMS.slice(0, 1) })
