import { parseArgs } from 'node:util'
import type { AlgorithmName } from './oracle/oracle.js'
import { ALGORITHM_NAMES } from './oracle/oracle.js'
import { compareSeeds, type OracleRun, savedSeeds, seedsFrom } from './saved-seeds.js'

// The limiter in memory against the oracle: `prove-oracle [--count 200000] [--from 1] [--algorithm sliding-log]`, one seeded sequence
// after another. Without an algorithm each in turn, and the plain sequences of rates.

/**
 * Seeds whose difference is a declared limit. In 5608 the clock is set back to the very microsecond at which a permit was given, the key is
 * reset in between, and a permit that is given then has the number of the old one: two bits tell apart permits of one slot and time.
 */
const DECLARED: Readonly<Partial<Record<AlgorithmName, readonly number[]>>> = { concurrency: [5608] }

const { values } = parseArgs({
  options: { from: { type: 'string', default: '1' }, count: { type: 'string', default: '200000' }, algorithm: { type: 'string' } },
})
const chosen = [undefined, ...ALGORITHM_NAMES].filter((name) => values.algorithm === undefined || values.algorithm === name)
if (chosen.length === 0) throw new RangeError(`no algorithm ${values.algorithm}; there are ${ALGORITHM_NAMES.join(', ')}`)
const [from, count] = [Number(values.from), Math.ceil(Number(values.count) / chosen.length)]
const startMs = performance.now()
const runs = chosen.flatMap(run)
const total = (field: 'sequences' | 'decisions'): number => runs.reduce((sum, each) => sum + each[field], 0)
const mismatches = runs.flatMap((each) => each.mismatches)
console.log(`${total('sequences')} sequences, ${total('decisions')} decisions, ${mismatches.length} mismatches`)
if (mismatches.length > 0) {
  console.log('Add a seed that once failed to packages/testkit/seeds/oracle.json: it is replayed in every run from then on.')
  process.exitCode = 1
}

function run(algorithm: AlgorithmName | undefined): OracleRun[] {
  const name = algorithm ?? 'rates, plain verbs'
  const onSequence = (done: number): void => {
    if (done % 20_000 === 0) console.log(`${name}: ${done} of ${count} sequences, ${Math.round((performance.now() - startMs) / 1000)} s`)
  }
  const both = [compareSeeds(savedSeeds(algorithm), { algorithm }), compareSeeds(seedsFrom(from, count), { algorithm, onSequence })]
  const found = both.map((each) => ({ ...each, mismatches: each.mismatches.filter((one) => !isDeclared(algorithm, one.seed)) }))
  for (const { seed, mismatch } of found.flatMap(({ mismatches }) => mismatches).slice(0, 20)) {
    console.log(`${name}, seed ${seed}: ${JSON.stringify(mismatch)}`)
  }
  return found
}

function isDeclared(algorithm: AlgorithmName | undefined, seed: number): boolean {
  const isKnown = algorithm !== undefined && DECLARED[algorithm]?.includes(seed) === true
  if (isKnown) console.log(`${algorithm}, seed ${seed}: a declared limit, see prove-oracle.ts`)
  return isKnown
}
