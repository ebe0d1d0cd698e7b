import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WindowEnd } from './hit-counts.js'

test('the end of a window is one Date for all callers, never before the window ends', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const end = new WindowEnd()
  const first = end.after(60_000)
  assert.equal(first.getTime(), 1_060_000)
  t.mock.timers.tick(500)
  assert.equal(end.after(59_500), first)
  assert.equal(end.after(59_499), first, 'a millisecond later than it is')
  assert.equal(end.after(59_501).getTime(), 1_060_001)
  assert.equal(end.after(59_498).getTime(), 1_059_998)
  t.mock.timers.tick(59_500)
  assert.equal(end.after(60_000).getTime(), 1_120_000)
})

test('a Date that a caller changed is not returned again', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const end = new WindowEnd()
  end.after(60_000).setTime(0)
  assert.equal(end.after(60_000).getTime(), 1_060_000)
  end.after(60_000).setTime(Number.NaN)
  assert.equal(end.after(60_000).getTime(), 1_060_000)
})
