import { coarseClock, createLimiter, tokenBucket } from 'sluicegate'
import { createGate } from 'sluicegate/gate'
import { Random, Zipf } from '../random.js'

/** Nanoseconds of one call, the least of several rounds, which alternate. */
export interface Speeds {
  readonly nothingInForce: number
  readonly lookAtPass: number
  readonly lookAtBlock: number
  readonly mapGet: number
  readonly take: number
  /** Of a record with its counting. */
  readonly record: number
  /** The same in exact counters: a map of numbers that is cleared at the end of each window. */
  readonly exactRecord: number
}

/** What a million distinct keys in one window take. */
export interface Memory {
  readonly gateBytes: number
  readonly exactBytes: number
}

const ROUNDS = 9
const CALLS = 400_000
const KEYS = 1 << 16
const BLOCKED = 5_000

/** Calls with the same keys in the same order, in rounds, so that all meet the same neighbours on the machine. */
export function lookSpeed(): Speeds {
  const random = new Random(11)
  const zipf = new Zipf(KEYS, 0.9)
  const order = Array.from({ length: CALLS }, () => `10.20.${zipf.draw(random) >> 8}.${zipf.draw(random) & 255}`)
  const keys = [...new Set(order)]
  const empty = createGate({ window: '10s', block: 1e9 })
  const gate = createGate({ window: '10s', block: { above: 1, for: '1h' } })
  const abusers = Array.from({ length: BLOCKED }, (_, i) => `172.16.${i >> 8}.${i & 255}`)
  for (const abuser of abusers) gate.record(abuser, 10)
  gate.flush()
  const blocked = Array.from({ length: CALLS }, () => abusers[random.integer(0, BLOCKED - 1)] as string)
  const map = new Map(keys.map((key) => [key, 1]))
  const limiter = createLimiter(tokenBucket({ limit: 1e9, window: '1s' }), { maxKeys: KEYS * 2, clock: coarseClock() })
  const counting = createGate({ window: '10s', block: 1e9 })
  let exact = new Map<string, number>()
  let kept = 0
  const subjects: Record<keyof Speeds, () => void> = {
    nothingInForce: () => {
      for (const key of order) if (empty.check(key) !== 'pass') kept++
    },
    lookAtPass: () => {
      for (const key of order) if (gate.check(key) !== 'pass') kept++
    },
    lookAtBlock: () => {
      for (const key of blocked) if (gate.check(key) === 'pass') kept++
    },
    mapGet: () => {
      for (const key of order) if (map.get(key) === undefined) kept++
    },
    take: () => {
      for (const key of order) if (!limiter.take(key).allowed) kept++
    },
    record: () => {
      for (const key of order) counting.record(key)
      counting.flush()
    },
    exactRecord: () => {
      exact = new Map()
      for (const key of order) exact.set(key, (exact.get(key) ?? 0) + 1)
    },
  }
  const least = Object.fromEntries(Object.keys(subjects).map((name) => [name, Number.POSITIVE_INFINITY])) as Record<keyof Speeds, number>
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of Object.entries(subjects) as [keyof Speeds, () => void][]) {
      const startMs = performance.now()
      run()
      least[name] = Math.min(least[name], ((performance.now() - startMs) / CALLS) * 1e6)
    }
  }
  if (kept !== 0 || exact.size === 0) throw new Error(`${kept} looks returned something else`)
  for (const each of [empty, gate, counting]) each.close()
  limiter.close()
  return least
}

/** Memory of the gate and of a map with a million distinct keys. Needs `--expose-gc` for the second. */
export function memoryOfDistinctKeys(): Memory {
  const gate = createGate({ window: '10s', block: 1_000 })
  for (let i = 0; i < 1_000_000; i++) gate.record(`client ${i}`)
  gate.flush()
  const { memoryBytes } = gate.stats()
  gate.close()
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  const exact = new Map<string, number>()
  for (let i = 0; i < 1_000_000; i++) {
    // As a key comes from a request: its own flat string.
    const key = Buffer.from(`client ${i}`).toString('latin1')
    exact.set(key, (exact.get(key) ?? 0) + 1)
  }
  globalThis.gc?.()
  const bytes = process.memoryUsage().heapUsed - before
  if (exact.size !== 1_000_000) throw new Error('the map is not whole')
  return { gateBytes: memoryBytes, exactBytes: bytes }
}
