import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LineProcess } from '../line-process.js'
import { startNode } from '../measure.js'
import { budgetUse } from './budget.js'
import { type Cell, cellName, type FleetRun } from './cell.js'
import type { CellFiles } from './cell-files.js'
import { commandCounts, sentBetween } from './command-counts.js'
import { type FleetEffort, msOf } from './fleet-effort.js'
import type { FleetJob, FleetStint } from './fleet-job.js'
import type { Place } from './place.js'
import { LEASE_MS } from './sluicegate.js'

const SUBJECT = fileURLToPath(new URL('./fleet-subject.js', import.meta.url))
const SETTLE_MS = 200

/**
 * Runs that are missing of cells that differ only in who decides: round after round, each contender in its own process, which rests while
 * the others run. Every other round goes backwards, so that no contender always follows the same neighbour.
 */
export async function measureCells(place: Place, cells: readonly Cell[], effort: FleetEffort, files: CellFiles): Promise<void> {
  const missing = cells.filter((cell) => files.read(cell).runs.length < effort.runs)
  const processes = new Map<Cell, LineProcess>()
  try {
    for (const cell of missing) processes.set(cell, await start(place, cell, effort))
    for (let round = 0; round < effort.runs; round++) {
      const order = missing.filter((cell) => files.read(cell).runs.length <= round)
      if (round % 2 === 1) order.reverse()
      for (const cell of order) files.add(cell, await oneRun(place, processes.get(cell) as LineProcess))
    }
  } finally {
    await Promise.all([...processes.values()].map((process) => process.stop()))
  }
}

function start(place: Place, cell: Cell, effort: FleetEffort): Promise<LineProcess> {
  const job: FleetJob = { cell, place, ms: msOf(effort, cell), prefix: `${cellName(cell)}-${Date.now().toString(36)}` }
  return startNode(cell.contender, SUBJECT, job)
}

async function oneRun({ ports }: Place, process: LineProcess): Promise<FleetRun> {
  await sleep(SETTLE_MS)
  const startedAt = new Date().toISOString()
  const before = await commandCounts(ports)
  const stint = (await process.ask('run')) as FleetStint
  const sent = sentBetween(before, await commandCounts(ports))
  const { takes, elapsedMs, withoutStore, all, admits, denials } = stint
  const use = budgetUse(stint, LEASE_MS)
  return { startedAt, takes, elapsedMs, calls: sent.calls, serverUs: sent.us, ...use, withoutStore, all, admits, denials }
}
