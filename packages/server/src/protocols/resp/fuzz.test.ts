import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { fuzzResp } from 'sluicegate-testkit/service/fuzz/fuzz-texts.js'

const INPUTS = shortOrLong(1_500, 6_000)
/** Seeds that found a fault once. */
const SAVED_SEEDS: readonly number[] = []

test('random input gives the same well-formed replies in pieces of any size', () => {
  fuzzResp(20_261, INPUTS)
  for (const seed of SAVED_SEEDS) fuzzResp(seed, 500)
})
