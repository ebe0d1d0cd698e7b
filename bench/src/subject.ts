// A process with one contender in it. Reads `run` lines, runs one repeat for each and answers a line of JSON.
import { CONTENDERS, type ContenderName } from './contenders.js'
import type { Job } from './job.js'
import { freshKeys, madeKeys } from './key-row.js'
import { answerRuns } from './line-process.js'
import { repeater } from './repeats.js'
import { idleWalk, walkOf } from './walk.js'

const job = JSON.parse(process.argv[2] ?? '') as Job
const row = job.freshKeys ? freshKeys(job.keys) : madeKeys(job.keys)
const contender = await CONTENDERS[job.contender as ContenderName](job)

// Every key is there, and its one token of the denying policy spent, before anything is measured.
for (const key of row.keys) await contender.take(key)

const repeat = await repeater(job, walkOf(contender, row), idleWalk(row))
await answerRuns(repeat)
