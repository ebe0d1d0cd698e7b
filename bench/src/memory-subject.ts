// A fresh process that fills one contender with keys, once, and says what that cost.
import { CONTENDERS, type ContenderName } from './contenders.js'
import type { Job } from './job.js'
import { answerRuns } from './line-process.js'

/** Bytes that a million keys cost. */
export interface Filled {
  /** Growth of the resident set. */
  readonly residentBytes: number
  /** What the contender itself says, if it says anything. */
  readonly ownBytes?: number
}

const job = JSON.parse(process.argv[2] ?? '') as Job
// As many takes over few keys first, so that code, and the young generation that the garbage of takes makes grow, are not counted.
const small = await CONTENDERS[job.contender as ContenderName]({ ...job, keys: 1_000 })
for (let i = 0; i < job.keys; i++) await small.take(`user-${i % 1_000}`)
await answerRuns(fill)

async function fill(): Promise<Filled> {
  const before = residentAfterCollection()
  const contender = await CONTENDERS[job.contender as ContenderName](job)
  const { takesPerKey = 1 } = job
  for (let i = 0; i < job.keys; i++) {
    for (let takes = 0; takes < takesPerKey; takes++) await contender.take(`user-${i}`)
  }
  const residentBytes = residentAfterCollection() - before
  const ownBytes = contender.memoryBytes?.()
  return ownBytes === undefined ? { residentBytes } : { residentBytes, ownBytes }
}

function residentAfterCollection(): number {
  for (let i = 0; i < 4; i++) globalThis.gc?.()
  return process.memoryUsage.rss()
}
