import {
  createLimiter,
  type Decision,
  fixedWindow,
  type Key,
  type Limiter,
  type ManualClock,
  type Permit,
  type Policy,
  slidingWindow,
} from 'sluicegate'
import { ALGORITHMS, type Examined } from './conformance/algorithms.js'
import type { MakeLimiter } from './conformance/fixture.js'
import { type ConformanceChoice, conformance } from './conformance.js'

/** What a fault may use beside the limiter that it spoils. */
interface Spoiled {
  readonly clock: ManualClock
  /** Makes a right limiter of another policy, or on another clock. */
  make(policy: Policy, clock?: Pick<ManualClock, 'nowMs'>): Limiter
}

/** A fault that other limiters have had. */
interface Fault {
  readonly algorithm: Examined['name']
  /** The shared parts of the suite to run, beside the algorithm's own. */
  readonly parts: NonNullable<ConformanceChoice['shared']>
  /** What it makes of a limiter. */
  readonly spoil: (limiter: Limiter, spoiled: Spoiled) => Partial<Limiter>
}

function changed(decision: Decision, change: (decision: Decision) => Partial<Decision>): Decision {
  return { ...decision, ...change(decision) }
}

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
const WINDOW_FAULTS: Readonly<Record<string, Fault>> = {
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
          count(key as Key, tokens)
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
  return { take: (key, cost) => limiterOf(key as Key).take(key, cost), peek: (key, cost) => limiterOf(key as Key).peek(key, cost) }
}

function denied(decision: Decision): Decision {
  return { ...decision, allowed: false, retryAfterMs: Math.max(1, decision.retryAfterMs) }
}

type Spoil = (limiter: Limiter) => Partial<Limiter>

function fault(parts: Fault['parts'], spoil: Spoil): Fault {
  return { algorithm: 'token bucket', parts, spoil }
}

/** Faults shown on the token bucket, though any algorithm may have most of them. */
const RATE_FAULTS: Readonly<Record<string, Fault>> = {
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

/** Faults of permits, of several policies at once, and of waiting. */
const PERMIT_FAULTS: Readonly<Record<string, Fault>> = {
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
            decision = part.take(keyOf(key as Key, i), cost)
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

// A program: runs the conformance suite over a limiter with the fault that the first argument names. It must fail.

const FAULTS: Readonly<Record<string, Fault>> = { ...withoutFault(), ...RATE_FAULTS, ...WINDOW_FAULTS, ...PERMIT_FAULTS }

/** For each algorithm none, with what is run for any of its faults. */
function withoutFault(): Record<string, Fault> {
  const faults = [RATE_FAULTS, WINDOW_FAULTS, PERMIT_FAULTS].flatMap((some) => Object.values(some))
  const none = ALGORITHMS.map(({ name: algorithm }): [string, Fault] => {
    const parts = faults.filter((fault) => fault.algorithm === algorithm).flatMap((fault) => fault.parts)
    return [`none, ${algorithm}`, { algorithm, parts: [...new Set(parts)], spoil: () => ({}) }]
  })
  return Object.fromEntries(none.filter(([, { algorithm }]) => algorithm !== 'gcra'))
}

function faulty({ spoil }: Fault): MakeLimiter {
  return (policy, options) => {
    const limiter = createLimiter(policy, options)
    const { clock } = options
    const wrong = spoil(limiter, { clock, make: (other, otherClock = clock) => createLimiter(other, { ...options, clock: otherClock }) })
    return new Proxy(limiter, {
      get(target, name) {
        const value = Reflect.get(name in wrong ? wrong : target, name, name in wrong ? wrong : target) as unknown
        return typeof value === 'function' ? value.bind(name in wrong ? wrong : target) : value
      },
    })
  }
}

const [, , name] = process.argv
if (name === undefined) console.log(JSON.stringify(Object.keys(FAULTS)))
else {
  const fault = FAULTS[name]
  if (fault === undefined) throw new RangeError(`no fault "${name}"`)
  // What every run of the tests asks of a limiter in memory has to find it.
  const share = name.startsWith('none, ') ? 0.005 : 0.02
  conformance('faulty', faulty(fault), { algorithms: [fault.algorithm], shared: fault.parts, share })
}
