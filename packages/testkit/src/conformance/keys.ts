import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from '../run-length.js'
import { admitted, entriesOf, type Fixtures, type MakePolicy } from './fixture.js'

const LONGEST = 1024

/** Keys are remote text: any string, distinguished to the last unit. */
export function keys(name: string, fixture: Fixtures, policyOf: MakePolicy): void {
  const three = policyOf({ limit: 3, window: '1h' })

  const assertDistinct = async (...texts: readonly string[]): Promise<void> => {
    const { limiter, keys } = await fixture(three)
    for (const text of texts) assert.equal(await admitted(limiter, text, 5), 3, JSON.stringify(text.slice(0, 40)))
    assert.equal(await keys(), texts.length * entriesOf(three))
  }

  test(`${name}: names of object properties are keys like any other`, async () => {
    await assertDistinct('__proto__', 'constructor', 'hasOwnProperty', 'toString', 'prototype', 'k')
    assert.equal(Object.keys(Object.prototype).length, 0)
  })

  test(`${name}: lone surrogates are distinguished, from each other and from what would replace them`, async () => {
    await assertDistinct('\ud800', '\ud801', '\udc00', '\ufffd', '\ud800\udc00', '\udc00\ud800')
  })

  test(`${name}: what looks alike is not alike`, async () => {
    await assertDistinct('\u00e9', 'e\u0301', 'K', 'k', '\u212a', ' k', 'k ', 'k\0', '\0', '\0\0')
  })

  test(`${name}: parts joined with a separator stay what the caller made of them`, async () => {
    await assertDistinct('a_b:c', 'a:b_c', 'a:b:c', '{a}b', 'a{b}', '{}')
  })

  test(`${name}: beginnings of a key are other keys, at every length`, async () => {
    const text = 'abcdefghijklmnopqrstuvwxyz0123456789'
    const length = shortOrLong(20, text.length)
    await assertDistinct(
      ...Array.from({ length }, (_, i) => text.slice(0, i + 1)),
      ...Array.from({ length: shortOrLong(10, 20) }, (_, i) => '\0'.repeat(i + 1)),
    )
  })

  test(`${name}: a key of 1,024 units is distinguished in its first, middle and last unit; 1,025 units are refused`, async () => {
    const long = 'x'.repeat(LONGEST)
    const changedAt = (place: number): string => `${long.slice(0, place)}y${long.slice(place + 1)}`
    await assertDistinct(long, changedAt(0), changedAt(LONGEST / 2), changedAt(LONGEST - 1), long.slice(1))
    await assert.rejects(async () => (await fixture(three)).limiter.take(`${long}x`), { code: 'KEY_INVALID' })
  })

  test(`${name}: thousands of keys of one pattern each have exactly their own budget`, async () => {
    const count = Math.ceil(20_000 * fixture.store.share)
    const { limiter, keys } = await fixture(three, { maxKeys: count })
    let passed = 0
    for (let round = 0; round < 4; round++)
      for (let i = 0; i < count; i++) if ((await limiter.take(`10.0.${i >> 8}.${i & 255}`)).allowed) passed++
    assert.equal(passed, 3 * count)
    const { evictions = 0, refusals = 0 } = limiter.stats()
    assert.deepEqual([await keys(), evictions, refusals], [count * entriesOf(three), 0, 0])
  })
}
