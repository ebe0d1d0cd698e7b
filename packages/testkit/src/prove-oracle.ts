import { parseArgs } from 'node:util'
import { compareSeeds, seedsFrom } from './compare-seeds.js'
import { savedSeeds } from './saved-seeds.js'

// The limiter in memory against the oracle: `prove-oracle [--count 200000] [--from 1]`, one seeded sequence after another.

const { values } = parseArgs({ options: { from: { type: 'string', default: '1' }, count: { type: 'string', default: '200000' } } })
const [from, count] = [Number(values.from), Number(values.count)]
const startMs = performance.now()
const progress = (done: number): void => {
  if (done % 20_000 === 0) console.log(`${done} of ${count} sequences, ${Math.round((performance.now() - startMs) / 1000)} s`)
}
const runs = [compareSeeds(savedSeeds()), compareSeeds(seedsFrom(from, count), progress)]
const mismatches = runs.flatMap((run) => run.mismatches)
for (const { seed, mismatch } of mismatches.slice(0, 20)) console.log(`seed ${seed}: ${JSON.stringify(mismatch)}`)
const total = (field: 'sequences' | 'decisions'): number => runs.reduce((sum, run) => sum + run[field], 0)
console.log(`${total('sequences')} sequences, ${total('decisions')} decisions, ${mismatches.length} mismatches`)
if (mismatches.length > 0) {
  console.log('Add a seed that once failed to packages/testkit/seeds/oracle.json: it is replayed in every run from then on.')
  process.exitCode = 1
}
