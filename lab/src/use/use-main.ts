import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { measuredWhere } from 'sluicegate-commands/load/machine-text.js'
import { type Keeper, type MeasuredCell, measuredCells } from './measured-use.js'
import { gridCells, type SimulatedCell, simulatedCell, TARGETS } from './use-grid.js'
import { filledUse, type MeasuredUse, type UseResults } from './use-page.js'

const USAGE = `npm run bench:use -- [--seconds 12]        real processes over a real Redis: seven minutes
npm run bench:use -- --cluster           the same over the process that forked them
npm run bench:use -- --grid [--quick]    the simulated grid: an hour; --quick: ten minutes
npm run bench:use -- --render            docs/scale.md again, from the saved results

What leases admit of what exact mode admits from the same arrivals, and their calls. Writes lab/results/use.json and docs/scale.md.`

const PAGE = new URL('../../../docs/scale.md', import.meta.url)
const RESULTS = new URL('../../results/use.json', import.meta.url)
const REQUESTS = 8_000
const SECONDS = 12

const options = process.argv.slice(2)
if (options.includes('--help')) console.log(USAGE)
else await run()

async function run(): Promise<void> {
  const found: Partial<UseResults> = {}
  if (options.includes('--grid')) Object.assign(found, { grid: await simulated(options.includes('--quick')) })
  else if (options.includes('--cluster')) Object.assign(found, { cluster: await measured('cluster') })
  else if (!options.includes('--render')) Object.assign(found, { measured: await measured('redis') })
  const results: UseResults = { ...saved(), ...found }
  mkdirSync(new URL('.', RESULTS), { recursive: true })
  const text = JSON.stringify(results, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value))
  // A cell a line.
  writeFileSync(RESULTS, `${text.replaceAll('},{', '},\n{')}\n`)
  writeFileSync(PAGE, filledUse(readFileSync(PAGE, 'utf8'), saved()))
}

function saved(): UseResults {
  try {
    return JSON.parse(readFileSync(RESULTS, 'utf8')) as UseResults
  } catch {
    return { grid: [] }
  }
}

async function simulated(isQuick: boolean): Promise<SimulatedCell[]> {
  const found: SimulatedCell[] = []
  for (const cell of gridCells(isQuick)) {
    const one = await simulatedCell(cell, REQUESTS)
    found.push(one)
    const missed = TARGETS.filter(({ applies, holds }) => applies(one) && !holds(one)).map(({ name }) => name)
    const { policy, arrivals, nodes, requestsPerLease, demand, share, callsPerRequest, callsPerToken } = one
    const where = `${policy} ${arrivals} nodes ${nodes} requests ${requestsPerLease} demand ${demand}`
    const what = `${(100 * share).toFixed(1)} % ${callsPerRequest.toFixed(3)} a request ${callsPerToken.toFixed(2)} a token`
    console.log(`${where}: ${what} ${missed.join('; ')}`)
  }
  return found
}

async function measured(keeper: Keeper): Promise<MeasuredUse> {
  const seconds = Number(options[options.indexOf('--seconds') + 1]) || SECONDS
  const cells: MeasuredCell[] = []
  for await (const cell of measuredCells(keeper, seconds)) {
    cells.push(cell)
    const { nodes, requestsPerLease, demand, exactAdmitted, leasedAdmitted, callsPerRequest, exactP99Ms, leasedP99Ms } = cell
    const p99s = `${exactP99Ms.toFixed(1)} and ${leasedP99Ms.toFixed(1)} ms`
    console.log(nodes, requestsPerLease, demand, (leasedAdmitted / exactAdmitted).toFixed(3), callsPerRequest.toFixed(3), p99s)
  }
  return { where: measuredWhere(), seconds, cells }
}
