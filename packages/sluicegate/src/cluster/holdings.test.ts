import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { gcra, slidingWindow } from '../index.js'
import type { Booking } from '../waiting/reserving.js'
import { Holdings } from './holdings.js'

const MOST_HELD = 100_000
const POLICY = gcra({ limit: 10, window: '1s', burst: 20 })

function booking(atUs: number): Booking {
  const decision = { allowed: true, limit: 10, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, policy: 'x', source: 'memory' } as const
  return { key: 'a', cost: 1, allowed: true, bookedUs: atUs, atUs, maybeSooner: false, decision }
}

test('a booking is held until nothing of it could come back, and those that are over make room', () => {
  const holdings = new Holdings(() => POLICY)
  for (let id = 0; id < shortOrLong(2, 10) * MOST_HELD; id++) {
    // A bucket is full again after 2 s; so 20 are ever of use.
    const nowUs = id * 100_000
    holdings.addBooking(id, booking(nowUs), nowUs)
    assert.ok(holdings.booking(id) !== undefined && (id < 19 || holdings.booking(id - 19) !== undefined))
  }
  const held = [...holdings.latestFirst()]
  assert.ok(held.length <= 40, `${held.length}`)
  assert.deepEqual([...holdings.latestFirst()], [])
})

test('one worker holds so much at once, and no more', () => {
  const holdings = new Holdings(() => slidingWindow({ limit: 10, window: '1h' }))
  for (let id = 0; id <= MOST_HELD; id++) holdings.addBooking(id, booking(0), 0)
  assert.equal(holdings.booking(MOST_HELD), undefined)
  assert.equal([...holdings.latestFirst()].length, MOST_HELD)
})

test('what is held comes back the latest first, whatever came between', () => {
  const holdings = new Holdings(() => slidingWindow({ limit: 10, window: '1h' }))
  const times = Array.from({ length: 20 }, (_, i) => i)
  for (const us of times) holdings.addBooking(us, booking(us), 0)
  assert.deepEqual(
    [...holdings.latestFirst()].map((holding) => holding.booking?.atUs),
    times.reverse(),
  )
})
