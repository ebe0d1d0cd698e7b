import { parseArgs } from 'node:util'
import { compareLeases } from './leases/compare-leases.js'
import { LEASED_ENCODINGS } from './leases/lease-history.js'
import { ALGORITHM_NAMES } from './oracle/oracle.js'
import { versionedOracleFor } from './oracle/versioned-oracle.js'
import { ownRedis } from './redis/own-redis.js'
import { savedTwinSeeds, seedsFrom } from './saved-seeds.js'
import { compareTwins } from './twins/compare-twins.js'

// The scripts on a real server against the oracle and the limiter in memory: `prove-twins [--count 60000] [--from 1] [--algorithm gcra]`,
// half of the sequences with changes of policy. Then, unless one algorithm is chosen, exact takes and leases of several versions of a policy against
// the records that the histories of leases run on. Starts its own server.

const { values } = parseArgs({
  options: { from: { type: 'string', default: '1' }, count: { type: 'string', default: '60000' }, algorithm: { type: 'string' } },
})
const chosen = ALGORITHM_NAMES.filter((name) => values.algorithm === undefined || values.algorithm === name)
if (chosen.length === 0) throw new RangeError(`no algorithm ${values.algorithm}; there are ${ALGORITHM_NAMES.join(', ')}`)
const [from, count] = [Number(values.from), Math.ceil(Number(values.count) / chosen.length / 2)]
const startMs = performance.now()
const redis = await ownRedis()
let sequences = 0
let steps = 0
let inMemory = 0
let mismatches = 0
try {
  for (const algorithm of chosen) {
    for (const updates of [false, true]) {
      const name = `${algorithm}${updates ? ', with changes of policy' : ''}`
      const run = await compareTwins(redis.runner, {
        algorithm,
        updates,
        prefix: name,
        oracle: updates ? versionedOracleFor : undefined,
        seeds: [...savedTwinSeeds(algorithm), ...seedsFrom(from, count)],
      })
      await redis.send('FLUSHALL')
      for (const found of run.mismatches.slice(0, 10)) console.log(`${name}: ${JSON.stringify(found)}`)
      console.log(`${name}: ${run.sequences} sequences, ${Math.round((performance.now() - startMs) / 1000)} s`)
      sequences += run.sequences
      steps += run.steps
      inMemory += run.inMemory
      mismatches += run.mismatches.length
    }
  }
  for (const encoding of values.algorithm === undefined ? LEASED_ENCODINGS : []) {
    // The first difference ends the run, with its seed and step.
    await compareLeases(redis.runner, encoding, [...seedsFrom(from, count)])
    await redis.send('FLUSHALL')
    console.log(
      `${encoding}, leases and takes of several versions: ${count} sequences, ${Math.round((performance.now() - startMs) / 1000)} s`,
    )
  }
} finally {
  await redis.stop()
}
console.log(`${sequences} sequences, ${steps} steps, ${inMemory} sequences also against memory, ${mismatches} mismatches`)
if (mismatches > 0) {
  console.log('Add a seed that once failed to packages/testkit/seeds/twins.json: it is replayed in every run from then on.')
  process.exitCode = 1
}
