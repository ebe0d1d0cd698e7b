import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { FUZZERS } from './fuzzers.js'

const INPUTS: Readonly<Record<string, number>> = {
  grpc: shortOrLong(300, 2_000),
  json: shortOrLong(150, 1_000),
  'envoy-yaml': shortOrLong(60, 400),
  yaml: shortOrLong(60, 400),
}
/** Seeds that found a fault once, by what is read. */
const SAVED_SEEDS: Readonly<Record<string, readonly number[]>> = { 'envoy-yaml': [6] }

for (const [name, inputs] of Object.entries(INPUTS)) {
  test(`random input for ${name} gives the same well-formed answer in pieces of any size, or a fault with its place`, async () => {
    await FUZZERS[name]?.(20_261, inputs)
    for (const seed of SAVED_SEEDS[name] ?? []) await FUZZERS[name]?.(seed, shortOrLong(0, 1_000))
  })
}
