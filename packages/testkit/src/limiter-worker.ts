import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, type Limiter, type LimiterHandle, StoreError } from 'sluicegate'
import { Random } from './random.js'
import type { WorkerJob, WorkerStart } from './worker-job.js'

// The program of a crew's worker thread: attaches to the limiter of its handle and does one job after another.

const { handle, attach, clockUs } = workerData as WorkerStart
let readingUs = 0
const limiter = await attached()

parentPort?.on('message', (job: WorkerJob) => parentPort?.postMessage(done(job)))

async function attached(): Promise<Limiter> {
  if (attach !== undefined) return (await import(attach.module))[attach.name](handle)
  const clock = clockUs && { nowMs: () => read(clockUs) / 1000 }
  return attachLimiter(handle as LimiterHandle, clock && { clock })
}

function read(cell: BigInt64Array): number {
  readingUs = Number(Atomics.load(cell, 0))
  return readingUs
}

function done(job: WorkerJob): unknown {
  switch (job.kind) {
    case 'take':
      return takeAll(job.keys, job.rounds)
    case 'always-ask':
      return alwaysAsk(job.key, job.flags)
    case 'for-ever':
      return forEver(job)
    case 'update':
      return limiter.update(job.policy)
    case 'look':
      return { decision: limiter.peek(job.key), policy: limiter.policy }
  }
}

function takeAll(keys: readonly string[], rounds: number): number[] {
  const passed = keys.map(() => 0)
  for (let round = 0; round < rounds; round++) {
    for (const [i, key] of keys.entries()) if (limiter.take(key).allowed) passed[i] = (passed[i] ?? 0) + 1
  }
  return passed
}

function alwaysAsk(key: string, flags: Int32Array): number[] {
  const readings: number[] = []
  for (;;) {
    const last = Atomics.load(flags, 0) === 1
    Atomics.add(flags, 1, 1)
    if (limiter.take(key).allowed) readings.push(readingUs)
    else if (last) return readings
  }
}

function forEver({ keys, seed, counts, takesOnly }: Extract<WorkerJob, { kind: 'for-ever' }>): never {
  const random = new Random(seed)
  for (;;) {
    const i = random.integer(0, keys.length - 1)
    const key = keys[i] as string
    if (takesOnly || random.chance(0.6)) {
      if (limiter.take(key).allowed) Atomics.add(counts, i + 1, 1)
    } else anyOther(random, key)
    Atomics.add(counts, 0, 1)
  }
}

function anyOther(random: Random, key: string): void {
  const verbs: readonly (() => unknown)[] = [
    () => limiter.refund(key, 1),
    () => limiter.penalize(key, 1),
    () => limiter.block(key, random.integer(0, 1)),
    () => limiter.reset(key),
    () => limiter.peek(key),
  ]
  try {
    random.pick(verbs)()
  } catch (error) {
    // A full table is an answer too; anything else ends the worker, and the test with it.
    if (!(error instanceof StoreError && error.code === 'TABLE_FULL')) throw error
  }
}
