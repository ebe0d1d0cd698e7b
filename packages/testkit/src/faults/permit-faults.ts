import type { Decision, Key, Permit } from 'sluicegate'
import type { Fault } from './fault.js'

/** Faults of permits, of several policies at once, and of waiting. */
export const PERMIT_FAULTS: Readonly<Record<string, Fault>> = {
  'a permit that comes back as often as it is released': {
    algorithm: 'concurrency',
    parts: [],
    spoil: (limiter) => ({
      take(key, cost = 1) {
        const permit = limiter.take(key, cost) as Permit
        const release = (): boolean => {
          if (!permit.release()) limiter.refund(key, cost)
          return permit.allowed
        }
        return spread(permit, { release })
      },
    }),
  },
  'a heartbeat that wakes the dead': {
    algorithm: 'concurrency',
    parts: [],
    spoil: (limiter) => ({
      take(key, cost) {
        const permit = limiter.take(key, cost) as Permit
        return spread(permit, { heartbeat: () => permit.heartbeat() || permit.allowed })
      },
    }),
  },
  'a permit that a reset does not end': {
    algorithm: 'concurrency',
    parts: [],
    spoil: (limiter) => ({
      reset(key) {
        limiter.block(key, 0)
        return limiter.peek(key)
      },
    }),
  },
  'policies of which some are charged though another refuses': {
    algorithm: 'all-of',
    parts: [],
    spoil(limiter, { make }) {
      const parts = limiter.policy.policies?.map((policy) => make(policy)) ?? []
      return {
        take(key, cost) {
          let decision: Decision | undefined
          for (const [i, part] of parts.entries()) {
            decision = part.take(keyOf(key, i), cost)
            if (!decision.allowed) return decision
          }
          return decision as Decision
        },
      }
    },
  },
  'the first policy speaks for all': {
    algorithm: 'all-of',
    parts: [],
    spoil: (limiter) => ({
      take(key, cost) {
        const decision = limiter.take(key, cost)
        return { ...decision, ...decision.parts?.[0], parts: decision.parts ?? [] }
      },
    }),
  },
  'takes that overtake those who wait': {
    algorithm: 'sliding window',
    parts: ['waiting'],
    spoil: (limiter, { clock }) => ({
      wait: (key, { cost } = {}) =>
        new Promise((resolve) => {
          const ask = (): void => {
            const decision = limiter.take(key, cost)
            if (decision.allowed) resolve(decision)
            else clock.after(1, ask)
          }
          ask()
        }),
    }),
  },
  'a timer for each who waits': {
    algorithm: 'fixed window',
    parts: ['waiting'],
    spoil: (limiter, { clock }) => ({
      wait(key, options) {
        const cancel = clock.after(1e9, () => undefined)
        const waiting = limiter.wait(key, options)
        void waiting.then(cancel, cancel)
        return waiting
      },
    }),
  },
  'an aborted wait that keeps what it held': {
    algorithm: 'token bucket',
    parts: ['waiting'],
    spoil: (limiter) => ({
      async wait(key, { signal, ...options } = {}) {
        signal?.throwIfAborted()
        const aborted = new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
        return Promise.race([limiter.wait(key, options), aborted])
      },
    }),
  },
}

function spread(permit: Permit, change: Partial<Permit>): Permit {
  const own = { release: () => permit.release(), heartbeat: () => permit.heartbeat(), [Symbol.dispose]: () => permit[Symbol.dispose]() }
  return { ...permit, ...own, ...change }
}

function keyOf(key: Key, part: number): string {
  return typeof key === 'string' ? key : (key[part] as string)
}
