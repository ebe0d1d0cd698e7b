import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, type Limiter, manualClock } from '../index.js'
import type { BookingService } from '../waiting/reserving.js'
import { GrantedLeases } from './holdings.js'

const POLICY = fixedWindow({ limit: 100, window: '1h' })

function lentFrom(tokens: number) {
  const clock = manualClock(3_600_000)
  const desk = createLimiter(POLICY, { clock }) as Limiter & BookingService
  const granted = new GrantedLeases()
  const nowUs = clock.nowMs() * 1000
  granted.add(1, { service: desk, policy: POLICY, bookings: [desk.book('k', tokens, 0)], flowsBack: false }, nowUs)
  return { clock, desk, granted, left: () => desk.peek('k').remaining }
}

test('a worker gives back what it was granted, and no more than that', () => {
  const { granted, left } = lentFrom(10)
  granted.giveBack(1, 4, 4, POLICY)
  assert.equal(left(), 94)
  granted.giveBack(1, 40, 40, POLICY)
  assert.equal(left(), 100)
  granted.giveBack(1, 10, 10, POLICY)
  granted.giveBack(2, 10, 10, POLICY)
  assert.equal(left(), 100)
})

test('nothing comes back into another window, nor of what was granted under another policy', () => {
  const { clock, desk, granted, left } = lentFrom(10)
  granted.giveBack(1, 1, 1, { ...POLICY } as typeof POLICY)
  assert.equal(left(), 90)
  clock.advance(3_600_000)
  desk.take('k', 50)
  granted.giveBack(1, 10, 10, POLICY)
  assert.equal(left(), 50)
})
