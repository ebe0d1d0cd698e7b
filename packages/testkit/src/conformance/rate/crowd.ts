import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admitted, type Fixtures } from '../fixture.js'
import type { MakeRate } from './make-rate.js'

/** The table, with words of 8 bytes whose debt wears off continuously. */
export function rateCrowd(name: string, fixture: Fixtures, policyOf: MakeRate): void {
  const five = policyOf({ limit: 5, window: '1h' })

  test(`${name}: a limiter for 100,000 keys takes 16 to 26 bytes a key`, () => {
    const { memoryBytes } = fixture(five).limiter.stats()
    assert.ok(memoryBytes > 100_000 * 16 && memoryBytes < 100_000 * 26)
  })

  test(`${name}: in a crowd within maxKeys every key goes on at its rate`, () => {
    const { limiter, clock } = fixture(five, { maxKeys: 300 })
    for (let round = 0; round < 20; round++) {
      for (let i = 0; i < 300; i++) assert.equal(admitted(limiter, `key ${i}`, 7), round === 0 ? 5 : 1)
      clock.advance(720_000)
    }
  })

  test(`I7 ${name}: a newcomer without room waits until the first token of a key near it comes back`, () => {
    for (const [onFull, cost] of [
      ['evict', 5],
      ['deny', 1],
    ] as const) {
      const { limiter } = fixture(five, { maxKeys: 1, onFull })
      for (let held = 0; limiter.take(`held ${held}`, cost).allowed && held < 1000; held++);
      assert.equal(limiter.take('newcomer').retryAfterMs, 720_000)
    }
  })
}
