import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { manualClock } from '../../index.js'
import { CallGuard } from './call-guard.js'
import { UnwantedBookings } from './unwanted-bookings.js'

const SOUND = { pausedMs: () => 0, isSound: () => true }

/** Bookings behind a guard over one server, all on one clock. */
function guarded() {
  const clock = manualClock()
  const guard = new CallGuard({ serverOf: () => undefined, slotOf: () => undefined }, clock, 100)
  const unwanted = new UnwantedBookings(guard, clock.after)
  /** Those that were sent, by their order. */
  const sent: number[] = []
  const collect = (order: number, call: () => Promise<unknown> = async () => undefined): void => {
    unwanted.collect('k', order, () =>
      guard.guarded('k', () => {
        sent.push(order)
        return call()
      }),
    )
  }
  const fail = (): Promise<unknown> => guard.guarded('k', broken).catch(() => undefined)
  return { clock, guard, unwanted, sent, collect, fail }
}

const broken = (): Promise<never> => Promise.reject(new Error('the client is closed'))
const silent = (): Promise<never> => new Promise(() => undefined)

/** Records the returned bookings. */
function noted(health = SOUND, after?: ConstructorParameters<typeof UnwantedBookings>[1]) {
  const unwanted = new UnwantedBookings(health, after)
  const sent: number[] = []
  const collect = (key: string | readonly string[], order: number): void => {
    unwanted.collect(key, order, async () => sent.push(order))
  }
  return { unwanted, sent, collect }
}

test('unwanted bookings are returned newest first, and among equals the last collected first', async () => {
  const { unwanted, sent, collect } = noted()
  for (const order of [3, 9, 1]) collect('k', order)
  for (const name of [105, 205]) unwanted.collect('k', 5, async () => sent.push(name))
  await turns()
  assert.deepEqual(sent, [9, 205, 105, 3, 1])
})

test('a discard waits for pending bookings of its key, some of which may join it, and for no later ones', async () => {
  const { unwanted, sent, collect } = noted()
  let answer: () => void = () => undefined
  let lose: (error: Error) => void = () => undefined
  unwanted.sent('k', new Promise<void>((resolve) => (answer = resolve)))
  unwanted.sent('k', new Promise((_, reject) => (lose = reject)))
  unwanted.sent('another', silent())
  collect('k', 1)
  unwanted.sent('k', silent())
  answer()
  await turns()
  assert.deepEqual(sent, [])
  collect('k', 2)
  lose(new Error('lost'))
  await turns()
  assert.deepEqual(sent, [2, 1])
})

test('several keys that were booked together go by the first, by which the server is known', async () => {
  const { unwanted, sent, collect } = noted()
  let answer: () => void = () => undefined
  unwanted.sent('a', new Promise<void>((resolve) => (answer = resolve)))
  collect(['a', 'b'], 1)
  collect('a', 2)
  await turns()
  assert.deepEqual(sent, [])
  answer()
  await turns()
  assert.deepEqual(sent, [2, 1])
})

test('a booking without an answer is waited for five seconds, and then forgotten', async () => {
  const clock = manualClock()
  const { unwanted, sent, collect } = noted(SOUND, clock.after)
  unwanted.sent('k', silent())
  collect('k', 1)
  clock.advance(4999)
  await turns()
  assert.deepEqual(sent, [])
  clock.advance(1)
  await turns()
  assert.deepEqual(sent, [1])
  unwanted.sent('k', silent())
  clock.advance(5000)
  collect('k', 2)
  await turns()
  assert.deepEqual(sent, [1, 2])
})

test('while the circuit is open or half open no booking is returned; none is lost', async () => {
  const { clock, guard, sent, collect, fail } = guarded()
  await Promise.all([fail(), fail(), fail()])
  for (const order of [1, 2, 3]) collect(order)
  await turns()
  assert.deepEqual(sent, [])
  clock.advance(guard.pausedMs('k'))
  let answer: () => void = () => undefined
  const probe = guard.guarded('k', () => new Promise<void>((resolve) => (answer = resolve)))
  for (let ms = 0; ms < 50; ms++) {
    clock.advance(1)
    await turns()
  }
  assert.deepEqual(sent, [])
  answer()
  await probe
  clock.advance(1)
  await turns()
  assert.deepEqual(sent, [3, 2, 1])
})

test('after a pause one goes ahead, and the others follow once it was answered', async () => {
  const { clock, guard, sent, collect, fail } = guarded()
  await Promise.all([fail(), fail(), fail()])
  let answer: () => void = () => undefined
  collect(3, () => new Promise<void>((resolve) => (answer = resolve)))
  for (const order of [1, 2]) collect(order)
  await turns()
  clock.advance(guard.pausedMs('k'))
  await turns()
  assert.deepEqual(sent, [3])
  answer()
  await turns()
  assert.deepEqual(sent, [3, 2, 1])
})

test('when the one that goes ahead is not answered the others stay booked', async () => {
  const { clock, guard, sent, collect, fail } = guarded()
  await Promise.all([fail(), fail(), fail()])
  for (const order of [1, 2, 3]) collect(order, silent)
  await turns()
  clock.advance(guard.pausedMs('k'))
  await turns()
  clock.advance(100)
  await turns()
  clock.advance(60_000)
  await turns()
  assert.deepEqual(sent, [3])
})

test('of thousands whose client was closed meanwhile some are tried, the others dropped within a second, and no timer keeps the process', async () => {
  const ended = guarded()
  for (let order = 0; order < 5000; order++) ended.collect(order, broken)
  await turns()
  assert.equal(ended.sent.length, 128)
  for (let ms = 0; ms < 1000; ms += 10) {
    ended.clock.advance(10)
    await turns(2)
  }
  assert.equal(ended.sent.length, 129)

  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const idle = timers()
  const real = noted({ pausedMs: () => 1000, isSound: () => false })
  real.unwanted.sent('k', silent())
  for (let order = 0; order < 5000; order++) real.collect('another', order)
  await turns()
  assert.equal(timers(), idle)
})

test('a server that is not asked for longer than five seconds is not waited for', async () => {
  const clock = manualClock()
  let pausedMs = 3000
  const { sent, collect } = noted({ pausedMs: () => pausedMs, isSound: () => false }, clock.after)
  collect('k', 1)
  for (let ms = 0; ms < 6000; ms += 1000) {
    await turns()
    clock.advance(1000)
  }
  await turns()
  pausedMs = 0
  clock.advance(60_000)
  await turns()
  assert.deepEqual(sent, [])
})

test('if the key’s server cannot be determined any more, the booking stays, and nothing is thrown', async () => {
  let isKnown = true
  const pausedMs = (): number => {
    if (!isKnown) throw new Error('not this time')
    return 0
  }
  const { sent, collect } = noted({ ...SOUND, pausedMs })
  isKnown = false
  collect('k', 1)
  await turns()
  isKnown = true
  collect('k', 2)
  await turns()
  assert.deepEqual(sent, [2])
})

test('a key is settled after its pending bookings are answered and the unwanted ones returned, whatever is booked later', async () => {
  const { unwanted, sent, collect } = noted()
  const settledAfter: string[] = []
  const settle = (name: string): unknown => unwanted.settled('k').then(() => settledAfter.push(`${name} after ${sent.length}`))
  settle('nothing')
  await turns()
  let answer: () => void = () => undefined
  unwanted.sent('k', new Promise<void>((resolve) => (answer = resolve)))
  settle('before')
  collect('k', 1)
  settle('amid')
  unwanted.sent('k', silent())
  await turns()
  assert.deepEqual(settledAfter, ['nothing after 0'])
  collect('k', 2)
  answer()
  await turns()
  await turns()
  assert.deepEqual([...settledAfter].sort(), ['amid after 2', 'before after 2', 'nothing after 0'])
})
