import { mkdirSync, writeFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { measuredWhere } from 'sluicegate-commands/load/load-result.js'
import { accuracyTable, costTable, type GateResults } from './gate-tables.js'
import { lookSpeed, memoryOfDistinctKeys } from './look-speed.js'
import { type AttackOptions, zipfAttack } from './zipf-attack.js'

// The gate beside exact counters: verdicts on Zipf traffic with attackers, errors of counts, the time of a look and of a record, memory.
// Prints the tables of docs/gate.md; with --save they are made from what this run found.

const RESULTS = new URL('../../../../bench/results/local/gate.json', import.meta.url)
const LEAST_SHARE = 0.99
const TRAFFIC = {
  seed: 1,
  seconds: 180,
  requestsPerSecond: 20_000,
  honestKeys: 500_000,
  exponent: 0.9,
  attackers: 500,
  windowMs: 10_000,
  above: 2_000,
  depth: 4,
}
const RUNS: readonly (readonly [name: string, options: AttackOptions])[] = [
  ['default size', { ...TRAFFIC, floodPerSecond: 0, width: 32_768 }],
  ['a flood of 50,000 distinct keys a second', { ...TRAFFIC, floodPerSecond: 50_000, width: 32_768 }],
  ['an eighth of the memory', { ...TRAFFIC, floodPerSecond: 0, width: 4_096 }],
]

const isSaved = process.argv.includes('--save')
const where = measuredWhere()
const runs = RUNS.map(([name, options]) => {
  const result = zipfAttack(options)
  console.error(`${name}: done`)
  return { name, result }
})
const speeds = lookSpeed()
setFlagsFromString('--expose-gc')
globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction
const results: GateResults = { kind: 'gate', where, runs, speeds, memory: memoryOfDistinctKeys() }
console.log(`${accuracyTable(runs)}\n\n${costTable(results)}`)

const failed = runs.filter(
  ({ result: { found, rises, right, verdicts, under, beyond, compared, stats } }) =>
    found < LEAST_SHARE * rises || right < LEAST_SHARE * verdicts || under > 0 || beyond > stats.delta * compared,
)
if (failed.length > 0) {
  console.log(`\nFAILED: ${failed.map(({ name }) => name).join(', ')}`)
  process.exitCode = 1
} else if (isSaved) {
  mkdirSync(new URL('.', RESULTS), { recursive: true })
  writeFileSync(RESULTS, `${JSON.stringify(results)}\n`)
  console.log('\nnpm run plots makes the tables and plots of docs/gate.md from these results')
}
