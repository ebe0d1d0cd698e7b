// A process with the app of each side, which counts what requests allocate. Started with a young generation that takes all of it.
import { PerformanceObserver } from 'node:perf_hooks'
import type { Walk } from '../key-row.js'
import { answerRuns } from '../line-process.js'
import type { SideBytes } from './measure-sides.js'
import type { MiddlewareSetting } from './middleware-settings.js'
import { forEachSide, sideWalks } from './side-runs.js'

const WARM_UP_REQUESTS = 20_000
const REQUESTS = 2_000
/** A collection that came in between makes a count worthless. */
const MOST_TRIES = 20

let collections = 0
new PerformanceObserver((list) => {
  collections += list.getEntries().length
}).observe({ entryTypes: ['gc'] })

const walks = await sideWalks(JSON.parse(process.argv[2] ?? '') as MiddlewareSetting)
await forEachSide((side) => Promise.resolve(walks[side](WARM_UP_REQUESTS)))
await answerRuns(() => forEachSide((side) => counted(walks[side])))

async function counted(walk: Walk): Promise<SideBytes> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    globalThis.gc?.()
    await settled()
    const before = collections
    const from = process.memoryUsage().heapUsed
    const allowed = await walk(REQUESTS)
    const bytes = (process.memoryUsage().heapUsed - from) / REQUESTS
    await settled()
    if (collections === before) return { bytes, requests: REQUESTS, allowed }
  }
  throw new Error('the heap was collected in the middle of each count')
}

/** Collections are reported in a later turn. */
async function settled(): Promise<void> {
  for (let turns = 0; turns < 4; turns++) await new Promise(setImmediate)
}
