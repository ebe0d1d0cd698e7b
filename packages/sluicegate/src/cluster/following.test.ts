import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { createLimiter } from '../create-limiter.js'
import { type Clock, concurrency, fixedWindow, gcra, type Policy } from '../index.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

const HUNDRED = fixedWindow({ limit: 100, window: '1h', name: 'p' })
/** Too slow to be leased. */
const SLOW = gcra({ limit: 1, window: '1s', burst: 1, name: 'p' })

type Made = ReturnType<typeof fleet>

/** The limiter that takes over the name of one that was closed. */
function follower({ pair, clock }: Made, policy: Policy = HUNDRED, over: Clock = clock) {
  return createLimiter(policy, { store: primary({ process: pair.parent }), clock: over })
}

/** How many listen for messages, and for the end of the channel: one for all limiters. */
function listeners({ pair }: Made): readonly number[] {
  const end = pair.parent as unknown as EventEmitter
  return [end.listenerCount('message'), end.listenerCount('disconnect')]
}

test('the name of a closed limiter is free at once, and each hears what it asked itself', async () => {
  const made = fleet(HUNDRED, { serve: { mode: 'exact' } })
  await turns()
  const before = made.limiter.take('a', 90)
  made.limiter.close()
  const next = follower(made)
  const [last, first, second] = await Promise.all([before, next.peek('b'), next.take('b', 3)])
  assert.deepEqual([last.remaining, first.remaining, second.remaining], [10, 100, 97])
  assert.deepEqual(listeners(made), [1, 1])
  assert.throws(() => follower(made), { code: 'NAME_INVALID' })
  next.close()
  assert.deepEqual(listeners(made), [0, 0])
})

test('however many limiters share a channel, it has one listener for messages and one for its end, which all of them hear', async () => {
  const made = fleet(HUNDRED)
  const policies = Array.from({ length: 20 }, (_, i) => fixedWindow({ limit: 100, window: '1h', name: `p${i}` }))
  const served = policies.map((policy) => serveLimiter(policy, { clock: made.clock }))
  for (const each of served) each.serve(made.pair.worker)
  const limiters = policies.map((policy) => follower(made, policy))
  await turns()
  const worker = made.pair.worker as unknown as EventEmitter
  assert.deepEqual(listeners(made), [1, 1])
  assert.deepEqual([worker.listenerCount('message'), worker.listenerCount('exit')], [1, 1])
  const waiting = limiters.map((limiter) => limiter.take('a'))
  made.pair.die()
  for (const { source } of await Promise.all(waiting)) assert.equal(source, 'outage')
  assert.deepEqual([worker.listenerCount('message'), worker.listenerCount('exit')], [0, 0])
  for (const limiter of [made.limiter, ...limiters]) limiter.close()
  assert.deepEqual(listeners(made), [0, 0])
})

test('a lease and the waits that are on their way to limiters that were closed serve who asked for them, and the rest comes back', async () => {
  const made = fleet(HUNDRED)
  let last = made.limiter
  for (let i = 0; i < 5; i++) {
    await last.take('warm')
    const asked = [...Array.from({ length: 5 }, () => last.take('a')), last.wait('a', { cost: 2 }), last.wait('b')]
    last.close()
    last = follower(made)
    for (const { allowed, source } of await Promise.all(asked)) assert.ok(allowed && source !== 'outage')
  }
  last.close()
  assert.deepEqual(listeners(made), [0, 0])
  await turns()
  const { limiter } = made.served
  assert.deepEqual([limiter.peek('a').remaining, limiter.peek('b').remaining, limiter.peek('warm').remaining], [65, 95, 95])
})

test('what is booked for those who wait at a limiter that is closed and followed in the same turn comes back', async () => {
  const made = fleet(SLOW)
  await made.limiter.take('a')
  let last = made.limiter
  for (let i = 0; i < 5; i++) {
    await last.peek('b')
    const refused = Array.from({ length: 3 }, () => assert.rejects(last.wait('a'), { code: 'CLOSED' }))
    last.close()
    last = follower(made, SLOW)
    await turns(12)
    assert.equal(made.served.limiter.peek('a').retryAfterMs, 1000)
    assert.deepEqual(listeners(made), [1, 1])
    await Promise.all(refused)
  }
  last.close()
  assert.deepEqual(listeners(made), [0, 0])
})

test('once it is answered, a limiter that was closed and followed leaves nothing that keeps the process alive', async () => {
  const made = fleet(HUNDRED)
  await turns()
  made.limiter.close()
  const timers = new Set<object>()
  const after: Clock['after'] = (ms, call) => {
    const timer = {}
    timers.add(timer)
    const cancel = made.clock.after(ms, () => {
      timers.delete(timer)
      call()
    })
    return () => {
      timers.delete(timer)
      cancel()
    }
  }
  const clock: Clock = { nowMs: () => made.clock.nowMs(), after }
  for (let i = 0; i < 5; i++) {
    const limiter = follower(made, HUNDRED, clock)
    await limiter.take('a')
    const asked = [limiter.wait('b'), limiter.peek('b')]
    limiter.close()
    follower(made, HUNDRED, clock).close()
    assert.ok(timers.size > 0)
    await Promise.all(asked)
    await turns()
    assert.deepEqual([timers.size, ...listeners(made)], [0, 0, 0])
  }
})

test('beside another of its name a closed limiter listens for no longer than five seconds to a primary that does not answer', async () => {
  const made = fleet(SLOW)
  await turns()
  made.pair.cut(true)
  const before = made.limiter.peek('a')
  made.limiter.close()
  const next = follower(made, SLOW)
  made.clock.advance(4999)
  await turns()
  next.close()
  assert.deepEqual(listeners(made), [1, 1], 'the one that was closed first')
  const last = follower(made, SLOW)
  made.clock.advance(1)
  assert.equal((await before).source, 'outage')
  made.pair.cut(false)
  assert.equal((await last.peek('a')).remaining, 1)
  last.close()
  assert.deepEqual(listeners(made), [0, 0])
})

test('that a permit of a closed limiter is given back is heard while another of its name goes on', async () => {
  const policy = concurrency({ limit: 3, ttl: '1h', name: 'p' })
  const made = fleet(policy)
  const permit = await made.limiter.take('a', 2)
  made.limiter.close()
  const next = follower(made, policy)
  assert.equal(await permit.release(), true)
  assert.equal(made.served.limiter.peek('a').remaining, 3)
  assert.deepEqual(listeners(made), [1, 1])
  next.close()
  assert.deepEqual(listeners(made), [0, 0])
})
