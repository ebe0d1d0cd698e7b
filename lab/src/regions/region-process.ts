import { Random } from 'sluicegate-testkit'
import { machineUs } from '../lab-load.js'
import type { Phase, RecordedTake } from './region-traffic.js'
import { type RegionPlace, takerOf, type WayName } from './region-ways.js'

/** What a process of a region does. */
export interface RegionJob extends RegionPlace {
  readonly way: WayName
  readonly index: number
  readonly seed: number
  readonly phases: readonly Phase[]
}

/** What it sends when all has ended. */
export interface RegionRecord {
  readonly takes: readonly RecordedTake[]
  /** To the home, in each phase. */
  readonly calls: readonly number[]
}

const TAKERS = 2
const KEY = 'key-1'
/** Takes that a dead store holds back. */
const LATE_MS = 1_500

process.once('message', (job: RegionJob) => void ran(job))

/** Connects, waits for the start, sends its part of the traffic at random times, and answers with the record. */
async function ran(job: RegionJob): Promise<void> {
  const takers = [await takerOf(job.way, job), await takerOf(job.way, job)].slice(0, TAKERS)
  const random = new Random(job.seed)
  process.send?.('ready')
  const startUs = await new Promise<number>((resolve) => process.once('message', resolve))
  const record: RecordedTake[] = []
  const calls: number[] = []
  const callsSoFar = (): number => takers.reduce((sum, taker) => sum + (taker.calls?.() ?? 0), 0)
  let fromUs = startUs
  for (const { seconds, rates } of job.phases) {
    const endUs = fromUs + seconds * 1_000_000
    const rate = rates[job.index] ?? 0
    const before = callsSoFar()
    let dueUs = rate === 0 ? endUs : fromUs + random.exponential(1_000_000 / rate)
    for (; dueUs < endUs; dueUs += random.exponential(1_000_000 / rate)) {
      await restUntil(dueUs)
      const due = dueUs
      const sentUs = machineUs()
      void random
        .pick(takers)
        .take(KEY)
        .then((allowed) => record.push([due, sentUs, machineUs(), allowed ? 1 : 0]))
        .catch(() => record.push([due, sentUs, machineUs(), 0]))
    }
    await restUntil(endUs)
    calls.push(callsSoFar() - before)
    fromUs = endUs
  }
  await new Promise((resolve) => setTimeout(resolve, LATE_MS))
  process.send?.({ takes: record, calls } satisfies RegionRecord, () => process.exit())
}

async function restUntil(us: number): Promise<void> {
  const ms = (us - machineUs()) / 1_000
  if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms))
}
