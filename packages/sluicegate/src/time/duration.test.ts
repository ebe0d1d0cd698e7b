import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PolicyError } from '../errors.js'
import { formatMs, toMs } from './duration.js'

test('a duration is milliseconds, or a number with a unit', () => {
  const expected = {
    '250ms': 250,
    '10s': 10_000,
    '1m': 60_000,
    '24h': 86_400_000,
    '30d': 2_592_000_000,
    '1.5s': 1500,
    '0.001ms': 0.001,
    '0s': 0,
  } as const
  for (const [text, ms] of Object.entries(expected)) assert.equal(toMs(text as '1s', 'window'), ms, text)
  assert.equal(toMs(16.667, 'window'), 16.667)
})

test('decimal fractions of a unit come out to the last bit', () => {
  assert.equal(toMs('0.3h', 'window'), 1_080_000)
  assert.equal(toMs('0.1s', 'window'), 100)
  assert.equal(toMs('1.1m', 'window'), 66_000)
  assert.equal(toMs('0.7d', 'window'), 60_480_000)
})

test('anything else is refused, by the name of the option', () => {
  for (const wrong of [
    -1,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '',
    '1',
    's',
    '1 s',
    '-1s',
    '+1s',
    '1e3s',
    '1S',
    '1w',
    '.5s',
    '1.s',
    '1s ',
    '١s',
    null,
    undefined,
    {},
    [1],
    true,
  ]) {
    assert.throws(
      () => toMs(wrong as number, 'window', 'WINDOW_INVALID'),
      (error) =>
        error instanceof PolicyError && error.code === 'WINDOW_INVALID' && error.option === 'window' && Object.is(error.value, wrong),
      String(wrong),
    )
  }
})

test('a duration is written in the largest unit that is whole, and reads back as itself', () => {
  const expected = [
    [250, '250ms'],
    [1000, '1s'],
    [1500, '1500ms'],
    [60_000, '1m'],
    [90_000, '90s'],
    [86_400_000, '1d'],
    [129_600_000, '36h'],
    [0, '0ms'],
    [1.001, '1.001ms'],
  ] as const
  for (const [ms, text] of expected) {
    assert.equal(formatMs(ms), text)
    assert.equal(toMs(text as '1s', 'window'), ms)
  }
})
