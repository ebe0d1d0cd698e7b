import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CREW_ALGORITHMS, flood, shortOrLong } from 'sluicegate-testkit'

const MEBIBYTE = 2 ** 20
const KEYS = shortOrLong(100_000, 1_000_000)

test(`I6, I7: ${KEYS} distinct keys through a table of 20,000 leave memory flat and an abuser limited to the token`, (t) => {
  const onProgress = (done: number, rssBytes: number): void => t.diagnostic(`${done} keys, process ${Math.round(rssBytes / MEBIBYTE)} MiB`)
  const result = flood({ distinctKeys: KEYS, maxKeys: 20_000, progressEvery: KEYS / 4, onProgress })
  assert.equal(result.excess, undefined)
  assert.equal(result.abuserPassed, result.abuserBudget)
  assert.equal(result.memoryGrewBytes, 0)
  assert.ok(result.rssGrewBytes < 32 * MEBIBYTE, `${result.rssGrewBytes} bytes`)
  assert.ok(result.stats.evictions > KEYS / 10)
})

for (const { name, cost, specOf, keyOf } of CREW_ALGORITHMS) {
  test(`I6, I7 ${name}: many keys through a table of 500 leave memory flat and an abuser limited to the token`, () => {
    const result = flood({ distinctKeys: shortOrLong(20_000, 40_000), maxKeys: 500, spec: specOf(5, 200), cost, keyOf, usPerKey: 25 })
    assert.equal(result.excess, undefined)
    assert.equal(result.abuserPassed, result.abuserBudget)
    assert.equal(result.memoryGrewBytes, 0)
    assert.ok(
      result.abuserPassed >= 5 && result.stats.evictions > 5_000,
      `${result.abuserPassed} passed, ${result.stats.evictions} evictions`,
    )
  })
}
