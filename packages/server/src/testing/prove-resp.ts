import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { fuzzResp } from './resp-fuzz.js'

// Random input for the codec and the sessions of RESP: `prove-resp [--count 1000000] [--from 1]`. Each thousand inputs have a seed.

const INPUTS_PER_SEED = 1_000

const { values } = parseArgs({ options: { from: { type: 'string', default: '1' }, count: { type: 'string', default: '1000000' } } })
const [from, count] = [Number(values.from), Number(values.count)]
const startMs = performance.now()
for (let done = 0; done < count; done += INPUTS_PER_SEED) {
  fuzzResp(from + done / INPUTS_PER_SEED, Math.min(INPUTS_PER_SEED, count - done))
  if ((done / INPUTS_PER_SEED) % 100 === 99) console.log(`${done + INPUTS_PER_SEED} inputs, ${seconds()} s`)
}
console.log(
  `${count} random inputs, each in pieces of three kinds: the same well-formed replies (${seconds()} s, ${availableParallelism()} processors)`,
)

function seconds(): number {
  return Math.round((performance.now() - startMs) / 1000)
}
