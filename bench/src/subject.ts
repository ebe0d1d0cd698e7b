// A process with one contender in it. Reads `run` lines, runs one repeat for each and answers a line of JSON.

import { summaryOf } from 'sluicegate-testkit/samples.js'
import { CONTENDERS, type ContenderName } from './contenders.js'
import type { Job, Repeat } from './job.js'
import { freshKeys, idleWalk, inOneLoop, inTurns, madeKeys, type Walk, walkOf } from './key-row.js'
import { answerRuns } from './line-process.js'

/**
 * Pairs of blocks, one with takes and one without, that make up one repeat in turns. Short ones, and the median over them, so
 * that a disturbance of a few milliseconds does not count.
 */
const PAIRS = 12
/** The same of a repeat in one loop. */
const BLOCKS = 24
const WARM_UP_ROUNDS = 4
const FIRST_GUESS = 1_000

/** Warms the walk up and finds out how many takes fill a repeat; answers a function that runs one repeat. */
async function repeater(job: Job, walk: Walk, idle: Walk): Promise<() => Promise<Repeat>> {
  return job.takesPerTurn === 0 ? loopRepeater(job, walk) : turnsRepeater(job, walk, idle)
}

async function loopRepeater(job: Job, walk: Walk): Promise<() => Promise<Repeat>> {
  const takes = await fill(job.repeatMs / BLOCKS, async (count) => (await inOneLoop(walk, count)).ns)
  return async () => {
    await new Promise(setImmediate)
    const each: number[] = []
    let allowed = 0
    for (let block = 0; block < BLOCKS; block++) {
      const { ns, allowed: passed } = await inOneLoop(walk, takes)
      each.push(ns / takes)
      allowed += passed
    }
    const { median } = summaryOf(each)
    return { ns: median, grossNs: median, takes: takes * BLOCKS, allowed }
  }
}

async function turnsRepeater(job: Job, walk: Walk, idle: Walk): Promise<() => Promise<Repeat>> {
  const { takesPerTurn } = job
  const turns = await fill(job.repeatMs / PAIRS / 2, async (count) => (await inTurns(walk, count, takesPerTurn)).ns)
  await fill(job.repeatMs / PAIRS / 2, async (count) => (await inTurns(idle, count, takesPerTurn)).ns)
  return async () => {
    const takes = turns * takesPerTurn
    const nets: number[] = []
    const grosses: number[] = []
    let allowed = 0
    for (let pair = 0; pair < PAIRS; pair++) {
      const without = pair % 2 === 0 ? await inTurns(idle, turns, takesPerTurn) : undefined
      const busy = await inTurns(walk, turns, takesPerTurn)
      const { ns } = without ?? (await inTurns(idle, turns, takesPerTurn))
      nets.push((busy.ns - ns) / takes)
      grosses.push(busy.ns / takes)
      allowed += busy.allowed
    }
    return { ns: summaryOf(nets).median, grossNs: summaryOf(grosses).median, takes: takes * PAIRS, allowed }
  }
}

/** How many make `ms`, found by running more and more of them. */
async function fill(ms: number, run: (count: number) => Promise<number>): Promise<number> {
  let count = FIRST_GUESS
  for (;;) {
    const tookMs = (await run(count)) / 1e6
    if (tookMs >= ms / 2) break
    count = Math.ceil(count * Math.min(10, Math.max(2, ms / Math.max(tookMs, 1e-3))))
  }
  // The first rounds ran in part before the compiler was done.
  for (let round = 0; round < WARM_UP_ROUNDS; round++) count = Math.max(1, Math.round((count * ms * 1e6) / (await run(count))))
  return count
}

const job = JSON.parse(process.argv[2] ?? '') as Job
const row = job.freshKeys ? freshKeys(job.keys) : madeKeys(job.keys)
const contender = await CONTENDERS[job.contender as ContenderName](job)

// Every key is there, and its one token of the denying policy spent, before anything is measured.
for (const key of row.keys) await contender.take(key)

const repeat = await repeater(job, walkOf(contender, row), idleWalk(row))
await answerRuns(repeat)
