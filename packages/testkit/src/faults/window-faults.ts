import type { Decision, Key, Limiter, Policy } from 'sluicegate'
import { fixedWindow, slidingWindow } from 'sluicegate'
import { changed, type Fault } from './fault.js'

const SECOND_MS = 1000
const MOST_16_BITS = 65_535

/** Decided by another algorithm with the same numbers. */
const decidedAs =
  (policyOf: (numbers: { readonly limit: number; readonly window: number }) => Policy): Fault['spoil'] =>
  ({ policy: { limit, windowMs } }, { make }) => {
    const other = make(policyOf({ limit, window: windowMs }))
    return decidedBy(() => other)
  }

/** Faults of fixed and sliding windows and of logs. */
export const WINDOW_FAULTS: Readonly<Record<string, Fault>> = {
  "windows that begin with a key's first call": {
    algorithm: 'fixed window',
    parts: [],
    spoil(limiter, { clock, make }) {
      const own = new Map<Key, Limiter>()
      const ofKey = (key: Key): Limiter => {
        const firstMs = clock.nowMs()
        const found = own.get(key) ?? make(limiter.policy, { nowMs: () => clock.nowMs() - firstMs })
        own.set(key, found)
        return found
      }
      return decidedBy(ofKey)
    },
  },
  'windows below a second made one of a whole second': {
    algorithm: 'fixed window',
    parts: ['time'],
    spoil(limiter, { make }) {
      const { limit, windowMs } = limiter.policy
      if (windowMs % SECOND_MS === 0) return {}
      const other = make(fixedWindow({ limit, window: Math.ceil(windowMs / SECOND_MS) * SECOND_MS }))
      return decidedBy(() => other)
    },
  },
  'a clock that steps back taken for a new window': {
    algorithm: 'fixed window',
    parts: ['time'],
    spoil(limiter, { clock }) {
      let lastMs = clock.nowMs()
      return {
        take(key, cost) {
          if (clock.nowMs() < lastMs) limiter.reset(key)
          lastMs = clock.nowMs()
          return limiter.take(key, cost)
        },
      }
    },
  },
  'ends of windows floored to seconds': {
    algorithm: 'fixed window',
    parts: ['time'],
    spoil: (limiter) => ({
      take: (key, cost) =>
        changed(limiter.take(key, cost), ({ retryAfterMs }) => ({ retryAfterMs: Math.floor(retryAfterMs / SECOND_MS) * SECOND_MS })),
    }),
  },
  'a refund into the window before': {
    algorithm: 'sliding window',
    parts: ['verbs'],
    spoil: (limiter) => ({
      refund(key, tokens) {
        const { remaining } = limiter.refund(key, tokens)
        return remaining < tokens ? limiter.reset(key) : limiter.peek(key)
      },
    }),
  },
  'counters of 16 bits that run over': {
    algorithm: 'sliding window',
    parts: [],
    spoil(limiter) {
      const counted = new Map<Key, number>()
      const count = (key: Key, tokens: number): void => {
        const total = (counted.get(key) ?? 0) + tokens
        if (total > MOST_16_BITS) limiter.reset(key)
        counted.set(key, total % (MOST_16_BITS + 1))
      }
      return {
        penalize(key, tokens) {
          limiter.penalize(key, tokens)
          count(key, tokens)
          return limiter.peek(key)
        },
      }
    },
  },
  'windows that do not slide': {
    algorithm: 'sliding window',
    parts: ['budget'],
    spoil: decidedAs(fixedWindow),
  },
  'a log with room for one less': {
    algorithm: 'sliding log',
    parts: [],
    spoil: (limiter) => ({
      take(key, cost = 1) {
        const before = limiter.peek(key, cost)
        return before.allowed && before.remaining === cost && cost === 1 ? denied(before) : limiter.take(key, cost)
      },
    }),
  },
  'a log that estimates': {
    algorithm: 'sliding log',
    parts: ['budget'],
    spoil: decidedAs(slidingWindow),
  },
  'denied requests that stay in the log': {
    algorithm: 'sliding log',
    parts: ['budget'],
    spoil: (limiter) => ({
      take(key, cost) {
        const decision = limiter.take(key, cost)
        if (!decision.allowed && Number.isFinite(decision.retryAfterMs)) limiter.penalize(key, cost ?? 1)
        return decision
      },
    }),
  },
}

/** Takes and peeks that another limiter answers. */
function decidedBy(limiterOf: (key: Key) => Limiter): Pick<Limiter, 'take' | 'peek'> {
  return { take: (key, cost) => limiterOf(key).take(key, cost), peek: (key, cost) => limiterOf(key).peek(key, cost) }
}

function denied(decision: Decision): Decision {
  return { ...decision, allowed: false, retryAfterMs: Math.max(1, decision.retryAfterMs) }
}
