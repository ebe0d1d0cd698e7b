import { readFileSync, writeFileSync } from 'node:fs'
import { simulatedRegions } from './simulated-regions.js'
import { filledRegions, filledScale } from './simulation-page.js'
import { gridCells, type SimulatedCell, simulatedCell, TARGETS } from './use-grid.js'

const USAGE = `npm run lab:simulate [-- --quick]        an hour; --quick: ten minutes

Limiters of the library over simulated time: what leases admit of what exact mode admits from the same arrivals, and what three regions
use of a limit. Prints each cell, and fills the tables of docs/scale.md and docs/regions.md.`

const [SCALE, REGIONS] = ['scale', 'regions'].map((name) => new URL(`../../../docs/${name}.md`, import.meta.url)) as [URL, URL]
const REQUESTS = 8_000
const SEED = 42
const RUNS = 5

const options = process.argv.slice(2)
if (options.some((option) => option !== '--quick')) {
  console.error(USAGE)
  process.exitCode = options.includes('--help') ? 0 : 2
} else {
  const regions = await simulatedRegions(SEED, RUNS)
  writeFileSync(REGIONS, filledRegions(readFileSync(REGIONS, 'utf8'), regions))
  const cells: SimulatedCell[] = []
  for (const cell of gridCells(options.includes('--quick'))) cells.push(told(await simulatedCell(cell, REQUESTS)))
  writeFileSync(SCALE, filledScale(readFileSync(SCALE, 'utf8'), cells))
}

function told(cell: SimulatedCell): SimulatedCell {
  const missed = TARGETS.filter(({ applies, holds }) => applies(cell) && !holds(cell)).map(({ name }) => name)
  const { policy, arrivals, nodes, requestsPerLease, demand, share, callsPerRequest, callsPerToken } = cell
  const where = `${policy} ${arrivals} nodes ${nodes} requests ${requestsPerLease} demand ${demand}`
  const what = `${(100 * share).toFixed(1)} % ${callsPerRequest.toFixed(3)} a request ${callsPerToken.toFixed(2)} a token`
  console.log(`${where}: ${what} ${missed.join('; ')}`)
  return cell
}
