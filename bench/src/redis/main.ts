import { rmSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { exitOnSignals, givenOptions, QUICK_RESULTS, RAW } from '../committed-form.js'
import type { LineProcess } from '../line-process.js'
import { load, machine } from '../machine.js'
import { startNode } from '../measure.js'
import { chosenNames } from '../question.js'
import { printReport, writeResults } from '../report.js'
import { installRivals, rivalVersions } from '../rivals.js'
import { type Cell, cellName, type FleetRun } from './cell.js'
import { FLEET_CONTENDER_NAMES, type FleetContenderName, LEASE_MS } from './contenders.js'
import type { FleetResults } from './fleet-report.js'
import { CellFiles, cellGroups, fleetReport } from './fleet-report.js'
import { commandCounts, type Place, sentBetween, serverVersion, startServers, TOPOLOGIES, type Topology } from './servers.js'
import { budgetUse, type FleetEffort, type FleetJob, type FleetStint, FULL, msOf, QUICK } from './stint.js'

const SUBJECT = fileURLToPath(new URL('./fleet-subject.js', import.meta.url))
const SETTLE_MS = 200

/**
 * Runs that are missing of cells that differ only in who decides: round after round, each contender in its own process, which rests while
 * the others run. Every other round goes backwards, so that no contender always follows the same neighbour.
 */
async function measureCells(place: Place, cells: readonly Cell[], effort: FleetEffort, files: CellFiles): Promise<void> {
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

const USAGE = `npm run bench:redis -- [--quick] [--fresh] [--only NAME]... [--topology NAME]... [--callers N]...

  --quick          one short run of each cell: a first look, no figures to quote; into bench/results/local/quick
  --fresh          measure all cells again; without it those that are there are kept, and a run that was interrupted goes on
  --only NAME      one contender, may be given again: ${FLEET_CONTENDER_NAMES.join('; ')}
  --topology NAME  ${TOPOLOGIES.join(' or ')}
  --callers N      only the cells with N callers`

const values = givenOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  fresh: { type: 'boolean', default: false },
  only: { type: 'string', multiple: true, default: [] },
  topology: { type: 'string', multiple: true, default: [] },
  callers: { type: 'string', multiple: true, default: [] },
})

exitOnSignals()

await run()

async function run(): Promise<void> {
  const contenders = chosenNames<FleetContenderName>('contender', values.only, FLEET_CONTENDER_NAMES, USAGE)
  const topologies = chosenNames<Topology>('topology', values.topology, TOPOLOGIES, USAGE)
  installRivals()
  const effort = values.quick ? QUICK : FULL
  const resultsFile = `${values.quick ? QUICK_RESULTS : RAW}redis.json`
  const folder = `${values.quick ? QUICK_RESULTS : RAW}redis`
  if (values.fresh) for (const each of [folder, resultsFile]) rmSync(each, { recursive: true, force: true })
  const files = new CellFiles(folder, resultsFile)
  const loadBefore = load()
  for (const topology of topologies) {
    const { place, stop } = await startServers(topology)
    try {
      for (const cells of cellGroups(topology, contenders)) {
        const [first] = cells
        if (first === undefined || (values.callers.length > 0 && !values.callers.includes(String(first.callers)))) continue
        console.error(
          `${topology}, ${first.shape}, ${first.callers} callers${first.pace > 0 ? `, ${first.pace} questions a second` : ''} ...`,
        )
        await measureCells(place, cells, effort, files)
      }
    } finally {
      await stop()
    }
  }
  // All cells that there are, whichever were asked for this time.
  const cells = TOPOLOGIES.flatMap((topology) => cellGroups(topology).flat()).map((cell) => files.read(cell))
  const about = {
    kind: 'redis',
    finishedAt: new Date().toISOString(),
    machine: machine(),
    server: serverVersion(),
    rivals: rivalVersions(),
  } as const
  const results: FleetResults = { ...about, effort, loadBefore, loadAfter: load(), cells: cells.filter(({ runs }) => runs.length > 0) }
  printReport(fleetReport(results))
  writeResults(resultsFile, results)
  rmSync(folder, { recursive: true })
}
