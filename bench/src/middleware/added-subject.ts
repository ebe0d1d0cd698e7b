// A process with the app of each side. Reads `run` lines, runs one repeat for each and answers a line of JSON.

import { answerRuns } from '../line-process.js'
import type { SideTime } from './measure-sides.js'
import { type MiddlewareSetting, SIDES, type Side } from './middleware-settings.js'
import { forEachSide, type SideRun, sideTimes, sideWalks } from './side-runs.js'

/** Short blocks, so that sides are compared within a few milliseconds: how fast a virtual machine is changes from second to second. */
const BLOCK_REQUESTS = 100
const BLOCKS = 60
const WARM_UP_BLOCKS = 200

const walks = await sideWalks(JSON.parse(process.argv[2] ?? '') as MiddlewareSetting)
await repeat(WARM_UP_BLOCKS)
await answerRuns(() => repeat(BLOCKS))

/** Blocks of each side in turn. Processor time, of which others on the machine take none. */
async function repeat(blocks: number): Promise<SideRun<SideTime>> {
  const took: Record<Side, number[]> = { unlimited: [], sluicegate: [], rival: [] }
  const allowed: Record<Side, number> = { unlimited: 0, sluicegate: 0, rival: 0 }
  for (let block = 0; block < blocks; block++) {
    for (const side of orderOf(block)) {
      const before = process.cpuUsage()
      allowed[side] += await walks[side](BLOCK_REQUESTS)
      const { user, system } = process.cpuUsage(before)
      took[side].push(((user + system) * 1000) / BLOCK_REQUESTS)
    }
  }
  const times = sideTimes(took)
  return forEachSide(async (side) => ({ ns: times[side], requests: blocks * BLOCK_REQUESTS, allowed: allowed[side] }))
}

/** Another side first each time, and every other time backwards, so that none always follows the same. */
function orderOf(block: number): readonly Side[] {
  const first = block % SIDES.length
  const order = [...SIDES.slice(first), ...SIDES.slice(0, first)]
  return block % 2 === 0 ? order : order.reverse()
}
