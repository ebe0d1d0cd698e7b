import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { chaosTable, withTable } from './chaos-table.js'
import { failovers } from './failover.js'
import { resize } from './resize.js'
import { sentinelFailover } from './sentinel.js'

// What `npm run chaos` does: breaks real servers under load and writes down what came of it. Another number of failovers: npm run chaos -- 5

const RESULTS = new URL('../results/', import.meta.url)
const PAGE = new URL('../../docs/outages.md', import.meta.url)
const FAILOVERS = 20
const SLOTS = 5_000

const count = Number(process.argv[2] ?? FAILOVERS)
if (!Number.isInteger(count) || count < 1) throw new RangeError(`not a number of failovers: ${process.argv[2]}`)
const told = (line: string): void => console.log(line)
const results = {
  node: process.version,
  failover: await failovers(count, told),
  sentinel: await sentinelFailover(),
  resize: await resize(SLOTS, told),
}
if (count === FAILOVERS) {
  mkdirSync(RESULTS, { recursive: true })
  writeFileSync(new URL('chaos.json', RESULTS), `${JSON.stringify(results, undefined, 1)}\n`)
  writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), chaosTable(results)))
}
console.log(`\n${chaosTable(results)}`)
