import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { FUZZERS } from './fuzz/fuzzers.js'

// Random input for everything that reads: `prove-fuzz [--of resp,grpc,json,envoy-yaml,yaml,storm-http,...] [--count 1000000] [--seconds 600] [--from 1]`. Each
// thousand inputs, or clients of a storm, have a seed. Prints a line of JSON for each reader; the exit code is 1 where one failed.

const INPUTS_PER_SEED = 1_000

const { values } = parseArgs({
  options: {
    of: { type: 'string', default: Object.keys(FUZZERS).join(',') },
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '86400' },
  },
})
const [from, count, maxSeconds] = [Number(values.from), Number(values.count), Number(values.seconds)]

for (const name of values.of.split(',')) {
  const fuzz = FUZZERS[name]
  if (fuzz === undefined) throw new Error(`there is no reader "${name}"; there are ${Object.keys(FUZZERS).join(', ')}`)
  const startMs = performance.now()
  const seconds = (): number => Math.round((performance.now() - startMs) / 1_000)
  let seed = from
  let inputs = 0
  let failed: string | undefined
  while (inputs < count && seconds() < maxSeconds && failed === undefined) {
    const next = Math.min(INPUTS_PER_SEED, count - inputs)
    try {
      await fuzz(seed, next)
      inputs += next
      seed++
    } catch (error) {
      const { message, cause } = error as Error
      failed = `${message}\n${cause instanceof Error ? cause.stack : String(cause)}`
      console.error(`${failed}\nagain: npm run prove:fuzz -- --of ${name} --from ${seed} --count ${next}`)
      process.exitCode = 1
    }
  }
  const rssMb = Math.round(process.resourceUsage().maxRSS / 1_024)
  console.log(
    JSON.stringify({
      proof: 'fuzz',
      of: name,
      holds: failed === undefined,
      inputs,
      seeds: [from, seed - 1],
      seconds: seconds(),
      peakRssMb: rssMb,
      processors: availableParallelism(),
    }),
  )
}
