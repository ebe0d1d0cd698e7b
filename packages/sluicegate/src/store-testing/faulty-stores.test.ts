import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../index.js'
import type { CasOutcome, CasState, CasStore, CasSwap } from '../store/cas-store.js'
import { memoryStore } from './memory-store.js'
import { storeConformance } from './store-conformance.js'

// The kit has to find each fault that is planted here, and none in a store without faults.

interface Bench {
  readonly store: ReturnType<typeof memoryStore>
  readonly clock: ReturnType<typeof manualClock>
}

/** The arrays that callers gave, by key: of both connections. */
const aliases = new Map<string, Uint8Array>()

/** The names of the checks that a store fails: of all, or of one alone. */
async function failedBy(make: (bench: Bench) => CasStore, only?: string): Promise<string[]> {
  const clock = manualClock(1_700_000_000_000)
  const store = memoryStore({ clock })
  const checks: { readonly name: string; readonly run: () => Promise<void> }[] = []
  storeConformance({
    connect: () => make({ store, clock }),
    test: (name, run) => checks.push({ name, run }),
    wait: async (ms) => clock.advance(ms),
    prefix: 'kit:',
  })
  const failed: string[] = []
  for (const { name, run } of checks) if (only === undefined || name === only) await run().catch(() => failed.push(name))
  return failed
}

const latinOf = (key: string): string => [...key].map((letter) => (letter.charCodeAt(0) > 255 ? '?' : letter)).join('')

function changed(store: ReturnType<typeof memoryStore>, change: Partial<CasStore>): CasStore {
  return {
    name: 'faulty',
    read: (key) => store.read(key),
    swap: (swap) => store.swap(swap),
    readAll: (keys) => store.readAll(keys),
    swapAll: (swaps) => store.swapAll(swaps),
    ...change,
  }
}

/** The same change to every state that a store gives. */
function seen(store: ReturnType<typeof memoryStore>, change: (state: CasState, key: string) => CasState): CasStore {
  return changed(store, {
    read: async (key) => change(await store.read(key), key),
    swap: async (swap) => {
      const { swapped, state } = await store.swap(swap)
      return { swapped, state: change(state, swap.key) }
    },
    readAll: async (keys) => (await store.readAll(keys)).map((state, i) => change(state, keys[i] as string)),
  })
}

test('a store without faults passes', async () => {
  assert.deepEqual(await failedBy(({ store }) => store), [])
  const plain = ({ store }: Bench): CasStore => ({ name: 'small', read: (key) => store.read(key), swap: (swap) => store.swap(swap) })
  assert.deepEqual(await failedBy(plain), [])
})

test('a store without faults whose calls take 300 ms passes, and no check takes 5 s', async () => {
  const store = memoryStore()
  const late = <Args extends readonly unknown[], Answer>(call: (...args: Args) => Promise<Answer>) => {
    return async (...args: Args): Promise<Answer> => {
      await new Promise((resolve) => setTimeout(resolve, 150))
      const answer = await call(...args)
      await new Promise((resolve) => setTimeout(resolve, 150))
      return answer
    }
  }
  const slow: CasStore = {
    name: 'slow',
    read: late((key) => store.read(key)),
    readAll: late((keys) => store.readAll(keys)),
    swap: late((swap) => store.swap(swap)),
    swapAll: late((swaps) => store.swapAll(swaps)),
    swapMany: late((swaps) => store.swapMany(swaps)),
  }
  const checks: Promise<void>[] = []
  const test = (name: string, run: () => Promise<void>): void => {
    const beginMs = performance.now()
    // All at once: their keys are their own.
    checks.push(run().then(() => assert.ok(performance.now() - beginMs < 5000, `${name}: ${performance.now() - beginMs} ms`)))
  }
  storeConformance({ connect: () => slow, test, prefix: 'slow:' })
  await Promise.all(checks)
})

const FAULTS: Record<string, readonly [check: string, make: (bench: Bench) => CasStore]> = {
  'many swaps are made together or not at all': [
    'of many swaps in one call each is made for itself',
    ({ store }) =>
      changed(store, {
        swapMany: async (swaps) => {
          const { swapped, states } = await store.swapAll(swaps)
          return states.map((state) => ({ swapped, state }))
        },
      }),
  ],
  'many swaps are read, and written later': [
    'of calls with many swaps that race from one version exactly one makes each',
    ({ store }) =>
      changed(store, {
        swapMany: async (swaps) => {
          const states = await store.readAll(swaps.map(({ key }) => key))
          await new Promise(setImmediate)
          return Promise.all(
            swaps.map(async (swap, i) => {
              const state = states[i] as CasState
              if (state.version !== swap.version) return { swapped: false, state }
              const { version } = await store.read(swap.key)
              return store.swap({ ...swap, version })
            }),
          )
        },
      }),
  ],
  'of many swaps the first 25 are made': [
    'many swaps in one call are all made, whatever their keys and values',
    ({ store }) =>
      changed(store, {
        swapMany: async (swaps) => {
          const made = await store.swapMany(swaps.slice(0, 25))
          return swaps.map((swap, i) => made[i] ?? { swapped: true, state: { value: swap.value, version: i, nowUs: 0 } })
        },
      }),
  ],
  'many swaps know Latin letters alone': [
    'many swaps in one call are all made, whatever their keys and values',
    ({ store }) =>
      changed(store, {
        swapMany: async (swaps) => {
          const made: CasOutcome[] = []
          for (const swap of swaps) made.push(await store.swap({ ...swap, key: latinOf(swap.key) }))
          return made
        },
        readAll: (keys) => store.readAll(keys.map(latinOf)),
      }),
  ],
  'letters outside of Latin-1 become question marks': ['keys differ by every character', ({ store }) => withKeys(store, latinOf)],
  'a read, then a write: a lost update': [
    'of swaps that race from one version exactly one is made',
    ({ store }) =>
      changed(store, {
        swap: async (swap) => {
          const state = await store.read(swap.key)
          if (state.version !== swap.version) return { swapped: false, state }
          await new Promise(setImmediate)
          const { version } = await store.read(swap.key)
          return store.swap({ ...swap, version })
        },
      }),
  ],
  'versions are not compared': [
    'a swap from another version is not made, and says what is there',
    ({ store }) => changed(store, { swap: async (swap) => store.swap({ ...swap, version: (await store.read(swap.key)).version }) }),
  ],
  'nothing is taken for any version': [
    'a swap from another version is not made, and says what is there',
    ({ store }) =>
      changed(store, {
        swap: async (swap) => store.swap(swap.version === undefined ? { ...swap, version: (await store.read(swap.key)).version } : swap),
      }),
  ],
  'a swap that is lost says nothing of what is there': [
    'a swap from another version is not made, and says what is there',
    ({ store }) =>
      changed(store, {
        swap: async (swap): Promise<CasOutcome> => {
          const { swapped, state } = await store.swap(swap)
          return swapped ? { swapped, state } : { swapped, state: { ...state, value: undefined, version: undefined } }
        },
      }),
  ],
  'versions are hashes of the value: ABA': [
    'a version never comes again, not even with the same value',
    ({ store }) => {
      const hash = (state: CasState): CasState => ({ ...state, version: state.value && `h${state.value.join()}` })
      return changed(store, {
        read: async (key) => hash(await store.read(key)),
        swap: async (swap) => {
          const there = await store.read(swap.key)
          if (hash(there).version !== swap.version) return { swapped: false, state: hash(there) }
          const { swapped, state } = await store.swap({ ...swap, version: there.version })
          return { swapped, state: hash(state) }
        },
      })
    },
  ],
  'versions begin again when a key does': [
    'a version never comes again, not even with the same value',
    ({ store }) => {
      const counts = new Map<string, Map<unknown, number>>()
      return numbered(store, counts)
    },
  ],
  'reads come from a replica': [
    'a read sees every swap that was answered before it',
    ({ store }) => {
      const replica = new Map<string, CasState>()
      return changed(store, {
        read: async (key) => {
          const state = await store.read(key)
          const older = replica.get(key) ?? state
          replica.set(key, state)
          return { ...older, nowUs: state.nowUs }
        },
      })
    },
  ],
  'the clock runs back': [
    'the clock never runs back, and counts whole microseconds since 1970',
    ({ store }) => {
      let calls = 0
      return seen(store, (state) => ({ ...state, nowUs: state.nowUs + (++calls % 3) * 700 }))
    },
  ],
  'the clock counts milliseconds': [
    'the clock never runs back, and counts whole microseconds since 1970',
    ({ store }) => seen(store, (state) => ({ ...state, nowUs: Math.floor(state.nowUs / 1000) })),
  ],
  'the clock has fractions': [
    'the clock never runs back, and counts whole microseconds since 1970',
    ({ store }) => seen(store, (state) => ({ ...state, nowUs: state.nowUs + 0.5 })),
  ],
  'the clock is read once': [
    'the clock runs at the pace of time',
    ({ store, clock }) => {
      const nowUs = clock.nowMs() * 1000
      return seen(store, (state) => ({ ...state, nowUs }))
    },
  ],
  'the ttl is rounded down to seconds': [
    'a value is kept for its ttl at least, and each swap begins it anew',
    ({ store }) => withTtl(store, (ttlMs) => Math.floor(ttlMs / 1000) * 1000),
  ],
  'the ttl begins only with the first swap': [
    'a value is kept for its ttl at least, and each swap begins it anew',
    ({ store }) => {
      const ends = new Map<string, number>()
      return changed(store, {
        swap: async (swap) => {
          const { nowUs } = await store.read(swap.key)
          const end = ends.get(swap.key) ?? nowUs + swap.ttlMs * 1000
          ends.set(swap.key, end)
          return store.swap({ ...swap, ttlMs: Math.max(1, (end - nowUs) / 1000) })
        },
      })
    },
  ],
  'a long ttl overflows 31 bits': ['a long ttl is kept', ({ store }) => withTtl(store, (ttlMs) => (ttlMs > 2 ** 31 ? 1 : ttlMs))],
  'a ttl of more than 30 days is taken for a date': [
    'a long ttl is kept',
    ({ store }) => withTtl(store, (ttlMs) => (ttlMs > 30 * 86_400_000 ? 1 : ttlMs)),
  ],
  'keys are cut at 250 characters': ['keys differ by every character', ({ store }) => withKeys(store, (key) => key.slice(0, 250))],
  'keys differ without case': ['keys differ by every character', ({ store }) => withKeys(store, (key) => key.toLowerCase())],
  'keys are normalized': ['keys differ by every character', ({ store }) => withKeys(store, (key) => key.normalize())],
  'a value that is swapped beside others is forgotten after a second': [
    'a value is kept for its ttl at least, and each swap begins it anew',
    ({ store }) => changed(store, { swapAll: (swaps) => store.swapAll(swaps.map((swap) => ({ ...swap, ttlMs: 1000 }))) }),
  ],
  'a long ttl of many swaps overflows 31 bits': [
    'a long ttl is kept',
    ({ store }) =>
      changed(store, {
        swapMany: (swaps) => store.swapMany(swaps.map((swap) => ({ ...swap, ttlMs: swap.ttlMs > 2 ** 31 ? 1 : swap.ttlMs }))),
      }),
  ],
  'many swaps know no case': [
    'keys differ by every character',
    ({ store }) => changed(store, { swapMany: (swaps) => store.swapMany(swaps.map((swap) => ({ ...swap, key: swap.key.toLowerCase() }))) }),
  ],
  'a swap alone knows no case': [
    'keys differ by every character',
    ({ store }) => changed(store, { swap: (swap) => store.swap({ ...swap, key: swap.key.toLowerCase() }) }),
  ],
  'several keys are read from a replica': [
    'a read sees every swap that was answered before it',
    ({ store }) => {
      const replica = new Map<string, CasState>()
      return changed(store, {
        readAll: async (keys) =>
          (await store.readAll(keys)).map((state, i) => {
            const older = replica.get(keys[i] as string) ?? state
            replica.set(keys[i] as string, state)
            return { ...older, nowUs: state.nowUs }
          }),
      })
    },
  ],
  'a swap that is lost tells what was there before': [
    'a swap from another version is not made, and says what is there',
    ({ store }) => {
      const before = new Map<string, CasState>()
      return changed(store, {
        swap: async (swap) => {
          const seen = await store.read(swap.key)
          const outcome = await store.swap(swap)
          if (outcome.swapped) before.set(swap.key, seen)
          return outcome.swapped ? outcome : { swapped: false, state: { ...outcome.state, ...before.get(swap.key) } }
        },
      })
    },
  ],
  'several swaps have a clock of milliseconds': [
    'the clock never runs back, and counts whole microseconds since 1970',
    ({ store }) =>
      changed(store, {
        swapAll: async (swaps) => {
          const { swapped, states } = await store.swapAll(swaps)
          return { swapped, states: states.map((state) => ({ ...state, nowUs: Math.floor(state.nowUs / 1000) })) }
        },
      }),
  ],
  'several swaps are read, and written later': [
    'swaps of the same keys in another order do not block each other',
    ({ store }) =>
      changed(store, {
        swapAll: async (swaps) => {
          const states = await store.readAll(swaps.map(({ key }) => key))
          await new Promise(setImmediate)
          if (states.some(({ version }, i) => version !== swaps[i]?.version)) return { swapped: false, states }
          const now = await store.readAll(swaps.map(({ key }) => key))
          return store.swapAll(swaps.map((swap, i) => ({ ...swap, version: now[i]?.version })))
        },
      }),
  ],
  'of several swaps the first 25 are made': [
    'many swaps in one call are all made, whatever their keys and values',
    ({ store }) =>
      changed(store, {
        swapAll: async (swaps) => {
          const { swapped, states } = await store.swapAll(swaps.slice(0, 25))
          return { swapped, states: swaps.map((swap, i) => states[i] ?? { value: swap.value, version: i, nowUs: 1e15 }) }
        },
      }),
  ],
  'values are text': [
    'a swap writes every byte, and a read gives its version',
    ({ store }) =>
      changed(store, { swap: (swap) => store.swap({ ...swap, value: new TextEncoder().encode(new TextDecoder().decode(swap.value)) }) }),
  ],
  'the value of the caller is kept, not a copy': [
    'a swap writes every byte, and a read gives its version',
    ({ store }) => {
      return changed(store, {
        swap: async (swap) => {
          const outcome = await store.swap(swap)
          if (outcome.swapped) aliases.set(swap.key, swap.value)
          return outcome
        },
        read: async (key) => {
          const state = await store.read(key)
          return state.value === undefined ? state : { ...state, value: aliases.get(key) ?? state.value }
        },
      })
    },
  ],
  'several swaps are made one after the other': [
    'several swaps are all made, or none',
    ({ store }) =>
      changed(store, {
        swapAll: async (swaps) => {
          const outcomes: CasOutcome[] = []
          for (const swap of swaps) outcomes.push(await store.swap(swap))
          return { swapped: outcomes.every(({ swapped }) => swapped), states: outcomes.map(({ state }) => state) }
        },
      }),
  ],
}

for (const [fault, [check, make]] of Object.entries(FAULTS)) {
  test(`the kit finds it: ${fault}`, async () => {
    assert.deepEqual(await failedBy(make, check), [check])
  })
}

function withTtl(store: ReturnType<typeof memoryStore>, ttlOf: (ttlMs: number) => number): CasStore {
  return changed(store, { swap: (swap: CasSwap) => store.swap({ ...swap, ttlMs: ttlOf(swap.ttlMs) }) })
}

function withKeys(store: ReturnType<typeof memoryStore>, keyOf: (key: string) => string): CasStore {
  return changed(store, {
    read: (key) => store.read(keyOf(key)),
    swap: (swap) => store.swap({ ...swap, key: keyOf(swap.key) }),
  })
}

/** Versions that count the writes of each key from 1. */
function numbered(store: ReturnType<typeof memoryStore>, counts: Map<string, Map<unknown, number>>): CasStore {
  const of = (key: string): Map<unknown, number> => {
    const known = counts.get(key) ?? new Map<unknown, number>()
    counts.set(key, known)
    return known
  }
  const named = (state: CasState, key: string): CasState => {
    if (state.version === undefined) counts.delete(key)
    else if (!of(key).has(state.version)) of(key).set(state.version, of(key).size + 1)
    return state.version === undefined ? state : { ...state, version: of(key).get(state.version) }
  }
  return changed(store, {
    read: async (key) => named(await store.read(key), key),
    swap: async (swap) => {
      const [real] = [...of(swap.key)].find(([, number]) => number === swap.version) ?? [swap.version]
      const { swapped, state } = await store.swap({ ...swap, version: real as CasSwap['version'] })
      return { swapped, state: named(state, swap.key) }
    },
  })
}
