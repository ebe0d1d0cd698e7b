// A process with one contender in it, connected to servers that its parent started. Reads `run` lines, runs one run for each on keys that
// no run has used, and answers a line of JSON.

import { answerRuns } from '../line-process.js'
import { FLEET_CONTENDERS } from './contenders.js'
import { closedLoop, paced } from './loads.js'
import type { FleetJob, FleetStint, Stint } from './stint.js'

const WARM_UP_MS = 500

const { cell, place, ms, prefix } = JSON.parse(process.argv[2] ?? '') as FleetJob
const { callers, shape, pace } = cell
const contender = await FLEET_CONTENDERS[cell.contender](place)
const keyOf = Array.from({ length: callers }, (_, caller) => (shape === 'hot_key' ? 0 : caller))

await stint('warm', WARM_UP_MS)
let runs = 0
await answerRuns(async (): Promise<FleetStint> => {
  const before = contender.withoutStore?.() ?? 0
  return { ...(await stint(String(runs++), ms)), withoutStore: (contender.withoutStore?.() ?? 0) - before }
})

function stint(run: string, forMs: number): Promise<Stint> {
  const keys = Array.from({ length: shape === 'hot_key' ? 1 : callers }, (_, key) => `${prefix}-${run}-user-${key}`)
  return pace > 0 ? paced(contender, keys, keyOf, forMs, pace) : closedLoop(contender, keys, keyOf, forMs)
}
