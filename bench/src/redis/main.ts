import { rmSync } from 'node:fs'
import { exitOnSignals, givenOptions, printReport, QUICK_RESULTS, RAW, writeResults } from '../bench-command.js'
import { chosenNames } from '../chosen-names.js'
import { load, machine } from '../machine.js'
import { installRivals, rivalVersions } from '../rivals.js'
import { CellFiles } from './cell-files.js'
import { cellGroups } from './cells.js'
import { FLEET_CONTENDER_NAMES, type FleetContenderName } from './contenders.js'
import { FULL, QUICK } from './fleet-effort.js'
import type { FleetResults } from './fleet-results.js'
import { fleetTables } from './fleet-tables.js'
import { fleetVerdicts } from './fleet-verdicts.js'
import { measureCells } from './measure-cells.js'
import { TOPOLOGIES, type Topology } from './place.js'
import { serverVersion, startServers } from './servers.js'

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
  printReport(fleetTables(results), fleetVerdicts(results))
  writeResults(resultsFile, results)
  rmSync(folder, { recursive: true })
}
