import { parentPort, workerData } from 'node:worker_threads'
import { makeLimiter } from '../../../sluicegate/dist/create-limiter.js'
import {
  allOf,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limiter,
  type ManualClock,
  manualClock,
  type Policy,
  PolicyError,
  restoreLimiter,
  StoreError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../../sluicegate/dist/index.js'
import { decodedSnapshot, encodedSnapshot, type Snapshot } from '../../../sluicegate/dist/memory/snapshot/snapshot.js'
import { Random } from '../random.js'

// A thread that restores snapshots whose bytes were changed and whose checksum was computed again, and drives what comes of them. Another
// watches it: the number of the seed at hand stands in shared memory.

/** What the thread is given. */
export interface MutationJob {
  readonly from: number
  readonly to: number
  /** The seed at hand, and a count that grows with each. */
  readonly progress: SharedArrayBuffer
}

/** What it answers. */
export interface MutationReport {
  readonly refused: number
  readonly driven: number
  /** Seeds that ended in another way, and how. */
  readonly faults: readonly string[]
}

const START_MS = 1_789_000_000_000
const few = { limit: 5, window: '1s' } as const
/** Each with another that it is changed to and back. */
const POLICIES: readonly (readonly [Policy, Policy])[] = [
  [tokenBucket(few), tokenBucket({ limit: 3, window: '1s', burst: 4 })],
  [tokenBucket({ limit: 7, window: '60s' }), tokenBucket({ limit: 9, window: '60s' })],
  [gcra({ ...few, burst: 2 }), gcra({ limit: 9, window: '2s' })],
  [fixedWindow(few), fixedWindow({ limit: 2, window: '3s' })],
  [fixedWindow({ limit: 5, window: 'day', timeZone: 'Europe/Rome' }), fixedWindow({ limit: 2, window: 'month' })],
  [slidingWindow(few), slidingWindow({ limit: 3, window: '7s' })],
  [slidingWindow({ limit: 70_000, window: '1s' }), slidingWindow({ limit: 80_000, window: '2s' })],
  [slidingLog(few), slidingLog({ limit: 9, window: '3s' })],
  [concurrency({ limit: 3, ttl: '1s' }), concurrency({ limit: 5, ttl: '3s' })],
  [
    allOf([slidingLog(few), tokenBucket({ ...few, limit: 9 })]),
    allOf([slidingLog({ limit: 9, window: '3s' }), tokenBucket({ ...few, limit: 4 })]),
  ],
]

function usedLimiter(policy: Policy): { readonly snapshot: Snapshot; readonly nowMs: number } {
  const clock = manualClock(START_MS)
  using limiter = createLimiter(policy, { clock, maxKeys: 24 })
  for (let i = 0; i < 20; i++) {
    limiter.take(`k${i}`, 1 + (i % 3))
    clock.advance(130)
    if (i % 5 === 0) limiter.block(`k${i}`, 5000)
    if (i % 4 === 0) limiter.reserve(`k${i}`, 3)
  }
  return { snapshot: decodedSnapshot(limiter.snapshot()), nowMs: clock.nowMs() }
}

/** The same of a table that has grown to its bound, and of which new keys without room share a budget. */
function fullLimiter(policy: Policy): { readonly snapshot: Snapshot; readonly nowMs: number } {
  const clock = manualClock(START_MS)
  using limiter = makeLimiter(policy, { clock, maxKeys: 4 }, { growTo: 40, newcomers: { limit: 5, windowMs: 3_600_000 } })
  for (let i = 0; i < 400; i++) limiter.take(`k${i >> 2}`, 2)
  return { snapshot: decodedSnapshot(limiter.snapshot()), nowMs: clock.nowMs() }
}

/** Changes bytes, most of them without a change of where numbers end; puts some in, and takes some away. */
function mutated(random: Random, contents: Uint8Array): Uint8Array {
  const bytes = [...contents]
  for (let left = random.pick([1, 1, 1, 2, 4, 16]); left > 0; left--) {
    const at = random.integer(0, bytes.length - 1)
    const byte = bytes[at] as number
    const kind = random.integer(0, 7)
    if (kind < 4) bytes[at] = (byte & 0x80) | random.pick([0, 1, 0x7f, random.integer(0, 0x7f)])
    else if (kind === 4) bytes[at] = random.integer(0, 255)
    else if (kind === 5) bytes.splice(at, 0, ...Array.from({ length: random.integer(1, 7) }, () => 0x80 | random.integer(0, 0x7f)))
    else if (kind === 6) bytes.splice(at, random.integer(1, 3))
    else bytes[at] = bytes[random.integer(0, bytes.length - 1)] as number
  }
  return Uint8Array.from(bytes)
}

function driven(limiter: Limiter, clock: ManualClock, random: Random, policies: readonly [Policy, Policy]): void {
  const key = (): string => `k${random.integer(0, 30)}`
  const verbs: readonly (() => unknown)[] = [
    () => limiter.update(random.pick(policies)),
    () => limiter.take(key(), random.integer(1, 5)),
    () => limiter.peek(key()),
    () => limiter.refund(key(), 2),
    () => limiter.penalize(key(), 7),
    () => limiter.block(key(), 100),
    () => limiter.reset(key()),
    () => limiter.reserve(key(), random.integer(1, 5)).cancel(),
    () => limiter.reserve(key(), random.integer(1, 5)).settle(random.integer(0, 6)),
    () => clock.advance(random.integer(-3000, 3000)),
    () => clock.advance(40 * 365 * 86_400_000 * random.fraction() ** 8),
    () => limiter.stats(),
    () => limiter.snapshot(),
    () => limiter.policy,
  ]
  for (let step = 0; step < 60; step++) {
    try {
      const verb = step % 50 === 5 ? verbs[0] : random.pick(verbs)
      verb?.()
    } catch (error) {
      if (!(error instanceof PolicyError || error instanceof StoreError)) throw error
    }
  }
}

function report({ from, to, progress }: MutationJob): MutationReport {
  const at = new Int32Array(progress)
  const used = [usedLimiter, fullLimiter].flatMap((make) => POLICIES.map(([policy]) => make(policy)))
  const faults: string[] = []
  let [refused, count] = [0, 0]
  for (let seed = from; seed < to; seed++) {
    Atomics.store(at, 0, seed)
    Atomics.add(at, 1, 1)
    const random = new Random(seed)
    const policies = POLICIES[seed % POLICIES.length] as readonly [Policy, Policy]
    const { snapshot, nowMs } = used[seed % used.length] as (typeof used)[number]
    const clock = manualClock(nowMs)
    try {
      using limiter = restoreLimiter(encodedSnapshot(snapshot.description, [mutated(random, snapshot.contents)]), { clock })
      driven(limiter, clock, random, policies)
      count++
    } catch (error) {
      if (error instanceof PolicyError && error.code === 'SNAPSHOT_INVALID') refused++
      else faults.push(`seed ${seed}, ${policies[0].name}: ${error}`)
    }
  }
  return { refused, driven: count, faults }
}

if (workerData?.progress !== undefined) parentPort?.postMessage(report(workerData as MutationJob))
