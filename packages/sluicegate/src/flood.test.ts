import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flood } from 'sluicegate-testkit'

const MEBIBYTE = 2 ** 20

test('I6, I7: a million distinct keys through a table of 20,000 leave memory flat and an abuser limited to the token', (t) => {
  const onProgress = (done: number, rssBytes: number): void => t.diagnostic(`${done} keys, process ${Math.round(rssBytes / MEBIBYTE)} MiB`)
  const result = flood({ distinctKeys: 1_000_000, maxKeys: 20_000, progressEvery: 250_000, onProgress })
  assert.equal(result.excess, undefined)
  assert.equal(result.abuserPassed, result.abuserBudget)
  assert.equal(result.memoryGrewBytes, 0)
  assert.ok(result.rssGrewBytes < 32 * MEBIBYTE, `${result.rssGrewBytes} bytes`)
  assert.ok(result.stats.evictions > 100_000)
})
