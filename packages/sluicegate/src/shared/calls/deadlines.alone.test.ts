import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { turns } from 'sluicegate-testkit/turns.js'
import { type Clock, manualClock } from '../../index.js'
import { Deadlines, Expiring } from './deadlines.js'

const TIMEOUT_MS = 100

/** Times by hand, and a process that can stand still: then the clock goes on, and timers ring late. */
function begun() {
  const times = manualClock()
  let stoodMs = 0
  const clock: Clock = { nowMs: () => times.nowMs() + stoodMs, after: times.after }
  const expired: string[] = []
  class Call extends Expiring {
    readonly name: string
    constructor(name: string) {
      super()
      this.name = name
    }
    override expire(): void {
      expired.push(`${this.name} at ${clock.nowMs()}`)
    }
  }
  const deadlines = new Deadlines(clock, TIMEOUT_MS)
  const added = (name: string): Call => {
    const call = new Call(name)
    deadlines.add(call)
    return call
  }
  const standStill = (ms: number): void => {
    stoodMs += ms
  }
  const pass = (ms: number): void => times.advance(ms)
  const passed = async (ms: number): Promise<void> => {
    pass(ms)
    await turns(3)
  }
  return { deadlines, added, expired, pass, passed, standStill }
}

afterEach(() => turns(3))

test('each call expires at its time, in order, and only once', async () => {
  const { added, expired, pass, passed } = begun()
  added('a')
  await turns(3)
  pass(30)
  added('b')
  await turns(3)
  await passed(69)
  assert.deepEqual(expired, [])
  await passed(1)
  assert.deepEqual(expired, ['a at 100'])
  await passed(30)
  await passed(1000)
  assert.deepEqual(expired, ['a at 100', 'b at 130'])
})

test('what was answered does not expire, wherever it stood in the queue', async () => {
  const { deadlines, added, expired, passed } = begun()
  const calls = ['a', 'b', 'c', 'd', 'e'].map(added)
  await turns(3)
  for (const i of [2, 0, 4]) deadlines.remove(calls[i] as Expiring)
  await passed(100)
  assert.deepEqual(expired, ['b at 100', 'd at 100'])
  assert.deepEqual(
    calls.map(({ before, after }) => [before, after]),
    calls.map(() => [undefined, undefined]),
  )
})

test('an answer that is read after the timer rang, and before anything else is done, is in time', async () => {
  const { deadlines, added, expired, pass } = begun()
  const [read, unread] = [added('read'), added('unread')]
  await turns(3)
  pass(100)
  // As the event loop does after its timers: it reads sockets, and then come immediates.
  deadlines.remove(read)
  await turns(3)
  assert.deepEqual(expired, ['unread at 100'])
  assert.equal(unread.after, undefined)
})

test('a late timer extends pending calls by one whole timeout, once', async () => {
  const { added, expired, passed, standStill } = begun()
  added('a')
  await turns(3)
  standStill(900)
  await passed(100)
  assert.deepEqual(expired, [])
  await passed(99)
  assert.deepEqual(expired, [])
  standStill(900)
  await passed(1)
  assert.deepEqual(expired, ['a at 2000'])
})

test('a little late is no stall', async () => {
  const { added, expired, passed, standStill } = begun()
  added('a')
  await turns(3)
  standStill(TIMEOUT_MS / 4)
  await passed(100)
  assert.deepEqual(expired, ['a at 125'])
})

test('a call begins when the turn that made it ends: only then is it written', async () => {
  const { added, expired, passed, standStill } = begun()
  added('a')
  standStill(99)
  added('b')
  await turns(3)
  await passed(1)
  await passed(98)
  assert.deepEqual(expired, [])
  await passed(1)
  assert.deepEqual(expired, ['a at 199', 'b at 199'])
})

test('calls that fail as they are made leave nothing behind', async () => {
  const { deadlines, added, expired, passed } = begun()
  deadlines.remove(added('a'))
  const b = added('b')
  deadlines.remove(added('c'))
  await turns(3)
  deadlines.remove(b)
  deadlines.remove(added('d'))
  await passed(1000)
  assert.deepEqual(expired, [])
})

test('one that fails to expire keeps no other from it', async () => {
  const { deadlines, added, expired, passed } = begun()
  class Broken extends Expiring {
    override expire(): void {
      throw new Error('broken')
    }
  }
  const uncaught: unknown[] = []
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.once('uncaughtException', (error) => uncaught.push(error))
  try {
    deadlines.add(new Broken())
    added('a')
    await turns(3)
    await passed(100)
    await passed(0)
  } finally {
    process.removeAllListeners('uncaughtException')
    for (const listener of listeners) process.on('uncaughtException', listener)
  }
  assert.deepEqual([expired, uncaught.length], [['a at 100'], 1])
})

test('an empty queue has no timer once the turn in which it became empty is over', async () => {
  let timers = 0
  const clock: Clock = {
    nowMs: () => 0,
    after: () => {
      timers++
      return () => {
        timers--
      }
    },
  }
  const deadlines = new Deadlines(clock, TIMEOUT_MS)
  class Call extends Expiring {
    override expire(): void {}
  }
  const calls = Array.from({ length: 5 }, () => new Call())
  for (const call of calls) deadlines.add(call)
  assert.equal(timers, 1)
  await turns(3)
  for (const call of calls) deadlines.remove(call)
  await turns(3)
  assert.equal(timers, 0)
  deadlines.add(calls[0] as Call)
  await turns(3)
  assert.equal(timers, 1)
  deadlines.remove(calls[0] as Call)
  deadlines.add(calls[1] as Call)
  await turns(3)
  assert.equal(timers, 1, 'the next call of the turn goes on with it')
  deadlines.remove(calls[1] as Call)
  await turns(3)
  assert.equal(timers, 0)
})
