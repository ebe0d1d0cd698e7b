import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exactEmission, Random, type RateSpec } from 'sluicegate-testkit'
import { PolicyError } from '../errors.js'
import { emissionOf } from './policy-numbers.js'

test('the integers of any policy are the ones that exact arithmetic finds, refusals included', () => {
  let refused = 0
  let rounded = 0
  for (let seed = 1; seed <= 60_000; seed++) {
    const spec = anySpec(new Random(seed))
    const exact = exactEmission(spec)
    const expected = exact && { unitsPerUs: Number(exact.q), unitsPerToken: Number(exact.perToken), capacity: Number(exact.capacity) }
    assert.deepEqual(emissionOrRefusal(spec), expected, `seed ${seed}: ${JSON.stringify(spec)}`)
    if (exact === undefined) refused++
    else if (exact.perToken * BigInt(spec.limit) !== exact.q * BigInt(Math.round(spec.windowMs * 1000))) rounded++
  }
  assert.ok(refused > 1000 && rounded > 1000, `${refused} refused, ${rounded} rounded`)
})

test('a policy that no state word can hold is refused by what it is about', () => {
  const faultOf = (spec: RateSpec) => {
    try {
      emissionOf(spec)
      return undefined
    } catch (error) {
      assert.ok(error instanceof PolicyError)
      return [error.code, error.option]
    }
  }
  assert.deepEqual(faultOf({ limit: 1, windowMs: 366 * 86_400_000, burst: 24 }), ['RANGE_UNSUPPORTED', 'burst'])
  assert.deepEqual(faultOf({ limit: 999_999_937, windowMs: 1, burst: 1 }), ['RANGE_UNSUPPORTED', 'limit'])
})

function emissionOrRefusal(spec: RateSpec): unknown {
  try {
    return emissionOf(spec)
  } catch (error) {
    assert.ok(error instanceof PolicyError)
    return undefined
  }
}

/** Over the whole range of options, accepted or not. */
function anySpec(random: Random): RateSpec {
  const windowUs = random.chance(0.3) ? random.magnitude(1, 31_622_400) * 1_000_000 : random.magnitude(1000, 366 * 86_400_000_000)
  return { limit: random.magnitude(1, 1_000_000_000), windowMs: windowUs / 1000, burst: random.magnitude(1, 1_000_000_000) }
}
