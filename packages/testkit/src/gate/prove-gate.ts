import { availableParallelism, cpus } from 'node:os'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { lookSpeed, memoryOfDistinctKeys } from './look-speed.js'
import { type AttackOptions, type AttackResult, zipfAttack } from './zipf-attack.js'

// The gate beside exact counters: verdicts on Zipf traffic with attackers, errors of counts, the time of a look and of a record, memory.
// Tables for docs/gate.md.

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

const share = (part: number, whole: number): string => `${((100 * part) / whole).toFixed(2)} % of ${whole.toLocaleString('en')}`
const ns = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ns`
const MiB = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`

const [cpu] = cpus()
console.log(
  `${new Date().toISOString().slice(0, 10)}, ${cpu?.model ?? 'unknown processor'}, ${availableParallelism()} cores, Node ${process.version}\n`,
)

const results = RUNS.map(([name, options]) => {
  const result = zipfAttack(options)
  console.error(`${name}: done`)
  return [name, result] as const
})
const rows: readonly (readonly [title: string, of: (result: AttackResult) => string])[] = [
  ['records', ({ records }) => records.toLocaleString('en')],
  ['keys in the window at once', ({ mostKeysInWindow }) => mostKeysInWindow.toLocaleString('en')],
  ['memory', ({ stats }) => MiB(stats.memoryBytes)],
  ['stated delay', ({ statedDelayMs }) => `${Math.ceil(statedDelayMs)} ms`],
  ['recall: keys above the threshold with a verdict in that time', ({ found, rises }) => share(found, rises)],
  ['attackers found', ({ attackersFound, attackersAbove }) => share(attackersFound, attackersAbove)],
  ['precision: verdicts on keys above the threshold', ({ right, verdicts }) => share(right, verdicts)],
  ['the same in exactly the window', ({ rightInWindow, verdicts }) => share(rightInWindow, verdicts)],
  ['delay, median, 99 %, most', ({ delaysMs }) => [delaysMs.median, delaysMs.p99, delaysMs.most].map((ms) => `${ms} ms`).join(', ')],
  ['counts below the exact one', ({ under, compared }) => share(under, compared)],
  ['counts beyond epsilon of all', ({ beyond, compared }) => share(beyond, compared)],
  ['error of a count, mean, 99 %, most', ({ error }) => [error.mean.toFixed(2), error.p99, error.most].join(', ')],
  ['bound on the error, epsilon of all', ({ error }) => error.bound.toFixed(0)],
  ['margin, most', ({ mostMargin }) => String(mostMargin)],
]
console.log(`| | ${results.map(([name]) => name).join(' | ')} |`)
console.log(`| --- |${' --- |'.repeat(results.length)}`)
for (const [title, of] of rows) console.log(`| ${title} | ${results.map(([, result]) => of(result)).join(' | ')} |`)

const speeds = lookSpeed()
console.log('\n| one call | time |\n| --- | --- |')
for (const [title, value] of [
  ['`check`, nothing in force', speeds.nothingInForce],
  ['`check` of a key that passes, 5,000 keys blocked', speeds.lookAtPass],
  ['`check` of a blocked key', speeds.lookAtBlock],
  ['`Map.get` of the same keys', speeds.mapGet],
  ['`take` of a token bucket, coarse clock', speeds.take],
  ['`record` with its counting', speeds.record],
  ['an exact count in a `Map` that is cleared each window', speeds.exactRecord],
] as const)
  console.log(`| ${title} | ${ns(value)} |`)
console.log(`\n${Math.round(1e9 / speeds.record).toLocaleString('en')} records a second`)

setFlagsFromString('--expose-gc')
globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction
const memory = memoryOfDistinctKeys()
console.log(`a million distinct keys: gate ${MiB(memory.gateBytes)}, exact map ${MiB(memory.exactBytes)}`)

const failed = results.filter(
  ([, { found, rises, right, verdicts, under, beyond, compared, stats }]) =>
    found < LEAST_SHARE * rises || right < LEAST_SHARE * verdicts || under > 0 || beyond > stats.delta * compared,
)
if (failed.length > 0) {
  console.log(`\nFAILED: ${failed.map(([name]) => name).join(', ')}`)
  process.exitCode = 1
}
