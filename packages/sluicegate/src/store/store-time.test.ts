import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock, type Ticker, tickerOf } from '../time/clock.js'

import { StoreTime } from './store-time.js'

function bench() {
  const clock = manualClock(1000)
  const ticker: Ticker = tickerOf(clock)
  return { clock, time: new StoreTime(ticker) }
}

test('the time of the store is never ahead of its clock, whatever an answer takes and the clocks drift', () => {
  for (const pace of [0.9991, 1, 1.0009]) {
    const { clock, time } = bench()
    const storeUs = (): number => 5_000_000_000 + (clock.nowMs() - 1000) * 1000 * pace
    for (const [thereMs, backMs] of [
      [1, 9],
      [9, 1],
      [0, 0],
      [3, 50],
    ] as const) {
      const sentUs = time.sent()
      clock.advance(thereMs)
      const nowUs = Math.floor(storeUs())
      clock.advance(backMs)
      time.note(nowUs, sentUs)
      for (let i = 0; i < 20; i++) {
        const known = time.now()
        assert.ok(known !== undefined && known.nowUs <= storeUs())
        assert.ok(known.nowUs + known.behindUs >= storeUs() - 1, 'and it may be behind by no more than it says')
        clock.advance(97)
      }
    }
  }
})

test('an answer that was overtaken does not set the time back, a step of the clock of the store does', () => {
  const { clock, time } = bench()
  const slowUs = time.sent()
  clock.advance(10)
  const quickUs = time.sent()
  clock.advance(10)
  time.note(20_000, quickUs)
  clock.advance(10)
  time.note(10_000, slowUs)
  assert.ok((time.now()?.nowUs ?? 0) > 25_000)
  time.note(1000, time.sent())
  assert.equal(time.now()?.nowUs, 1000)
})

test('a reading that is old, or from before a step back of the own clock, is none', () => {
  const { clock, time } = bench()
  assert.equal(time.now(), undefined)
  time.note(1_000_000, time.sent())
  clock.advance(9_999)
  assert.notEqual(time.now(), undefined)
  clock.advance(2)
  assert.equal(time.now(), undefined)
  time.note(2_000_000, time.sent())
  clock.advance(-1)
  assert.equal(time.now(), undefined)
})
