import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PolicyError } from './errors.js'
import { type PriceTable, prices, type Usage } from './prices.js'

const TABLE: PriceTable = {
  per: 1_000_000,
  models: { small: { input: 150_000, cached: 75_000, output: 600_000 }, plain: { input: 1, output: 3 }, free: { input: 0, output: 0 } },
}

const tokens = fc.integer({ min: 0, max: 1_000_000 })
const price = fc.integer({ min: 0, max: 1_000_000 })
const usage = fc.record({ input: tokens, cached: tokens, output: tokens })
const table = fc.record({ per: fc.constantFrom(1, 1_000, 1_000_000), input: price, cached: price, output: price })

function ofTable({ per, ...model }: { per: number; input: number; cached: number; output: number }) {
  return prices({ per, models: { m: model } })
}

test('a cost is the exact sum, rounded up once', () => {
  const { cost } = prices(TABLE)
  assert.equal(cost({ model: 'small', input: 1_000, output: 200 }), 270)
  assert.equal(cost({ model: 'small', input: 1_000, cached: 1_000, output: 1 }), 226)
  assert.equal(cost({ model: 'small' }), 0)
  assert.equal(cost({ model: 'plain', cached: 1_000_000 }), 1, 'without a price of its own the cache costs as the input')
  assert.equal(cost({ model: 'plain', input: 1 }), 1)
  fc.assert(
    fc.property(table, usage, (each, used) => {
      const exact =
        BigInt(used.input) * BigInt(each.input) + BigInt(used.cached) * BigInt(each.cached) + BigInt(used.output) * BigInt(each.output)
      const charged = BigInt(ofTable(each).cost({ model: 'm', ...used })) * BigInt(each.per)
      assert.ok(charged >= exact && charged < exact + BigInt(each.per))
    }),
  )
})

test('pieces cost together what the whole does, when each is the cost of all so far less that of all before', () => {
  fc.assert(
    fc.property(table, fc.array(usage, { maxLength: 20 }), (each, pieces) => {
      const { cost } = ofTable(each)
      let sum: Required<Usage> = { model: 'm', input: 0, cached: 0, output: 0 }
      let charged = 0
      for (const { input, cached, output } of pieces) {
        const next = { model: 'm', input: sum.input + input, cached: sum.cached + cached, output: sum.output + output }
        const piece = cost(next) - cost(sum)
        assert.ok(piece >= 0)
        charged += piece
        sum = next
      }
      assert.equal(charged, cost(sum))
    }),
  )
})

test('what a budget pays for is the most that costs no more', () => {
  const small = prices(TABLE)
  assert.equal(small.affordable({ model: 'small', input: 1_000 }, 270), 200)
  assert.equal(small.affordable({ model: 'small', input: 1_000 }, 149), 0)
  assert.equal(small.affordable({ model: 'free' }, 0), Number.POSITIVE_INFINITY)
  fc.assert(
    fc.property(table, usage, fc.integer({ min: 0, max: 10 ** 9 }), (each, { input, cached }, budget) => {
      fc.pre(each.output > 0)
      const { affordable, cost } = ofTable(each)
      const output = affordable({ model: 'm', input, cached }, budget)
      if (output > 0) assert.ok(cost({ model: 'm', input, cached, output }) <= budget)
      assert.ok(cost({ model: 'm', input, cached, output: output + 1 }) > budget)
    }),
  )
})

test('what is no price and no number of tokens is refused, and names of objects are no models', () => {
  for (const [broken, option] of [
    [{ per: 10, models: {} }, 'per'],
    [{ models: { m: { input: 0.5, output: 1 } } }, 'models.m.input'],
    [{ models: { m: { input: 1 } } }, 'models.m.output'],
    [{ models: { m: { input: 1, output: -1 } } }, 'models.m.output'],
    [{ models: { m: { input: 1, output: 2 ** 53 } } }, 'models.m.output'],
    [{ models: { m: { input: 1, output: Number.NaN } } }, 'models.m.output'],
    [{ models: { m: { input: 1, output: 1, cache: 1 } } }, 'models.m'],
    [{ models: { m: 1 } }, 'models.m'],
    [{ models: [] }, 'models'],
    [{ models: {}, currency: 'EUR' }, 'prices'],
    [null, 'prices'],
  ] as const) {
    const refused = (error: unknown): boolean => error instanceof PolicyError && error.code === 'OPTION_INVALID' && error.option === option
    assert.throws(() => prices(broken as unknown as PriceTable), refused, JSON.stringify(broken))
  }
  const { cost } = prices({ models: { m: { input: 1, output: 2 ** 40 } } })
  const huge = { model: 'm', output: 2 ** 40 }
  for (const wrong of [
    { model: 'n' },
    { model: '__proto__' },
    { model: 'constructor' },
    { model: 'm', input: -1 },
    { model: 'm', input: 0.5 },
    huge,
    { model: 'm', tokens: 1 },
    'm',
    null,
  ]) {
    assert.throws(() => cost(wrong as Usage), { code: 'COST_INVALID' }, JSON.stringify(wrong))
  }
})
