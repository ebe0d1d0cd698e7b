import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settled } from 'sluicegate-testkit'
import { turns } from 'sluicegate-testkit/turns.js'
import { PolicyError } from '../../errors.js'
import { manualClock, StoreError } from '../../index.js'
import type { CancelSignal } from '../backend.js'
import { CallGuard, KeyFault, NO_EVENTS, ONE_PLACE } from './call-guard.js'

const OUT = { name: 'StoreError', code: 'OUTAGE' }

/** Servers `a` and `b` by the first character of a key, others unknown; slots by the rest of it. */
function guardOver(clock = manualClock(), timeoutMs = 100) {
  const places = {
    serverOf: ([server = '']: string) => (server === 'a' || server === 'b' ? server : undefined),
    slotOf: (key: string) => (/^\D\d+$/.test(key) ? Number(key.slice(1)) : undefined),
  }
  const events: string[] = []
  const guard = new CallGuard(places, clock, timeoutMs, {
    outage: (server, isOut) => events.push(`${server} ${isOut ? 'is given up' : 'is back'}`),
    answered: () => undefined,
    charged: () => undefined,
  })
  return { guard, clock, events }
}

const broken = (): Promise<never> => Promise.reject(new Error('ECONNRESET'))
const silent = (): Promise<never> => new Promise(() => undefined)

async function fails(guard: CallGuard, key: string, times = 1): Promise<void> {
  for (let i = 0; i < times; i++) await assert.rejects(guard.guarded(key, broken), OUT)
}

test('an answer in time is the answer, and no timer is left', async () => {
  const { guard } = guardOver()
  assert.equal(await guard.guarded('a', async () => 7), 7)
  assert.deepEqual(guard.counts, { answered: 1, failed: 0, timedOut: 0, circuitsOpened: 0, charged: 0 })
})

test('what takes longer than the time-out has failed right then, not before and not later', async () => {
  const { guard, clock } = guardOver()
  let endedMs: number | undefined
  const asked = guard.guarded('a', silent).catch((error) => {
    endedMs = clock.nowMs()
    return error
  })
  clock.advance(99)
  await settled()
  assert.equal(endedMs, undefined)
  clock.advance(1)
  const error = await asked
  assert.equal(endedMs, 100)
  assert.ok(error instanceof StoreError)
  assert.match(error.message, /did not answer within 100 ms/)
  assert.equal(guard.counts.timedOut, 1)
})

test('a late answer goes to the clean-up, not to the caller', async () => {
  const { guard, clock } = guardOver()
  let answer: (value: string) => void = () => undefined
  const late: string[] = []
  const asked = guard.guarded(
    'a',
    () => new Promise<string>((resolve) => (answer = resolve)),
    (value) => late.push(value),
  )
  clock.advance(100)
  await assert.rejects(asked, OUT)
  answer('booked')
  await settled()
  assert.deepEqual(late, ['booked'])
  assert.equal(guard.counts.answered, 0)
})

test('a late error is dropped', async () => {
  const { guard, clock } = guardOver()
  let fail: (error: Error) => void = () => undefined
  const asked = guard.guarded('a', () => new Promise((_, reject) => (fail = reject)))
  clock.advance(100)
  await assert.rejects(asked, OUT)
  fail(new Error('closed'))
  await settled()
  assert.equal(guard.counts.failed, 1)
})

test('one server that is out leaves the others alone', async () => {
  const { guard, clock, events } = guardOver()
  await fails(guard, 'a1', 3)
  await assert.rejects(
    guard.guarded('a2', async () => 1),
    /not asked for now/,
  )
  assert.equal(await guard.guarded('b1', async () => 1), 1)
  assert.ok(guard.pausedMs('a3') > 0)
  assert.equal(guard.pausedMs('b3'), 0)
  clock.advance(100)
  assert.equal(await guard.guarded('a2', async () => 1), 1)
  assert.deepEqual(events, ['a is given up', 'a is back'])
  assert.equal(guard.counts.circuitsOpened, 1)
})

test('where the client does not tell servers apart, neighbouring slots are given up together, and no others', async () => {
  const { guard } = guardOver()
  await fails(guard, 'x300', 3)
  assert.ok(guard.pausedMs('x511') > 0)
  assert.equal(guard.pausedMs('x512'), 0)
  assert.equal(guard.pausedMs('x255'), 0)
})

test('a server that is given up is not asked, but by one call at a time after a pause', async () => {
  const { guard, clock } = guardOver()
  await fails(guard, 'a', 3)
  let asked = 0
  const call = (): Promise<never> => {
    asked++
    return silent()
  }
  for (let ms = 0; ms < 1000; ms += 10) {
    clock.advance(10)
    for (let i = 0; i < 10; i++) guard.guarded('a', call).catch(() => undefined)
    await turns(3)
  }
  // Pauses of 50 to 100, 100 to 200, 200 to 400 ms, and 100 ms of silence each.
  assert.ok(asked >= 2 && asked <= 4, `${asked} calls`)
})

test('misuse is no outage, and no sign of life either', async () => {
  const { guard, clock } = guardOver()
  const misuse = (): Promise<never> => Promise.reject(new PolicyError('CROSS_SLOT', 'key', 'k', 'is wrong'))
  for (let i = 0; i < 5; i++) await assert.rejects(guard.guarded('a', misuse), { code: 'CROSS_SLOT' })
  assert.equal(guard.pausedMs('a'), 0)
  await fails(guard, 'a', 3)
  clock.advance(100)
  await assert.rejects(guard.guarded('a', misuse), { code: 'CROSS_SLOT' })
  await fails(guard, 'a')
  assert.ok(guard.pausedMs('a') > 50, 'the pause has doubled')
})

test('a refusal by the server is an answer', async () => {
  const { guard } = guardOver()
  const refusal = (): Promise<never> => Promise.reject(new StoreError('TABLE_FULL', 'no room'))
  for (let i = 0; i < 5; i++) await assert.rejects(guard.guarded('a', refusal), { code: 'TABLE_FULL' })
  assert.equal(guard.pausedMs('a'), 0)
  assert.equal(guard.counts.answered, 5)
})

test('what cannot be decided about one key is an outage of it, and a sign of life', async () => {
  const { guard, clock, events } = guardOver()
  const fault = (): Promise<never> => Promise.reject(new KeyFault('WRONGTYPE', { cause: 7 }))
  const expected = { ...OUT, message: 'the store cannot decide about this key: WRONGTYPE', cause: 7 }
  for (let i = 0; i < 5; i++) await assert.rejects(guard.guarded('a', fault), expected)
  assert.deepEqual([guard.pausedMs('a'), guard.counts.answered, guard.counts.failed], [0, 0, 5])
  await fails(guard, 'a', 3)
  clock.advance(100)
  await assert.rejects(guard.guarded('a', fault), expected)
  assert.equal(await guard.guarded('a', async () => 1), 1)
  assert.deepEqual(events, ['a is given up', 'a is back'])
})

test('if finding the server of a key throws, the caller gets that error and nothing is sent', async () => {
  const mine = new PolicyError('OPTION_INVALID', 'hashTag', 'k', 'is wrong')
  const throwing = (): never => {
    throw mine
  }
  const guard = new CallGuard({ serverOf: throwing, slotOf: throwing }, manualClock(), 100)
  let asked = 0
  await assert.rejects(
    guard.guarded('a', async () => asked++),
    mine,
  )
  assert.equal(asked, 0)
})

test('256 calls that are cut off together cost one short pause', async () => {
  const { guard } = guardOver()
  await Promise.all(Array.from({ length: 256 }, () => assert.rejects(guard.guarded('a', broken), OUT)))
  assert.ok(guard.pausedMs('a') <= 100)
  assert.equal(guard.counts.circuitsOpened, 1)
})

test('a call that timed out is cancelled, and its client is notified', async () => {
  const { guard, clock } = guardOver()
  let recall: CancelSignal | undefined
  let notified = 0
  const asked = guard.guarded('a', (given) => {
    recall = given
    given.addEventListener('abort', () => notified++)
    return silent()
  })
  assert.equal(recall?.aborted, false)
  clock.advance(100)
  await assert.rejects(asked, OUT)
  assert.deepEqual([recall?.aborted, notified], [true, 1])
})

test('a client without a listener is not notified, and an answered call is not cancelled', async () => {
  const { guard, clock } = guardOver()
  let notified = 0
  const listener = (): void => {
    notified++
  }
  const written = guard.guarded('a', (recall) => {
    recall.addEventListener('abort', listener)
    recall.removeEventListener('abort', listener)
    return silent()
  })
  const answered = guard.guarded('b', async (recall) => {
    recall.addEventListener('abort', listener)
    return 5
  })
  assert.equal(await answered, 5)
  clock.advance(100)
  await assert.rejects(written, OUT)
  assert.equal(notified, 0)
})

test('a server without calls is out for half a minute after the last pause, and no longer', async () => {
  const { guard, clock } = guardOver()
  await fails(guard, 'a', 3)
  await fails(guard, 'b', 3)
  assert.equal(guard.openCircuits, 2)
  clock.advance(20_000)
  await fails(guard, 'b')
  clock.advance(15_000)
  assert.equal(guard.openCircuits, 1, 'a was called long ago')
  assert.equal(await guard.guarded('b', async () => 1), 1)
  assert.equal(guard.openCircuits, 0)
})

test('a guard within another opens no circuit', async () => {
  const guard = new CallGuard(ONE_PLACE, manualClock(), 100, NO_EVENTS, true)
  await fails(guard, 'a', 50)
  assert.equal(await guard.guarded('a', async () => 1), 1)
  assert.deepEqual([guard.openCircuits, guard.counts.circuitsOpened], [0, 0])
})

test('whatever a call does, its promise settles, and no timer is left', async () => {
  const { guard, clock } = guardOver()
  const throws = (): never => {
    throw new Error('at once')
  }
  await assert.rejects(guard.guarded('a', throws), OUT)
  await assert.rejects(
    guard.guarded('b', () => Promise.reject(Object.create(null))),
    OUT,
  )
  await assert.rejects(
    guard.guarded('c', () => Promise.reject(undefined)),
    OUT,
  )
  clock.advance(1000)
  await turns(3)
  assert.deepEqual([guard.counts.failed, guard.counts.timedOut], [3, 0])
})
