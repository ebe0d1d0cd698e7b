import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { concurrency, type Decision, fixedWindow, gcra } from '../index.js'

const HUNDRED = fixedWindow({ limit: 100, window: '1h', name: 'p' })
/** Too slow to be leased. */
const SLOW = gcra({ limit: 1, window: '1s', burst: 1, name: 'p' })
const DEEP = gcra({ limit: 1, window: '1s', burst: 200, name: 'p' })
/** As slow, with room for several that wait. */
const TEN = gcra({ limit: 1, window: '1s', burst: 10, name: 'p' })

type Made = ReturnType<typeof fleet>

function listeners({ pair }: Made): number {
  return (pair.parent as unknown as EventEmitter).listenerCount('message')
}

function waits({ limiter }: Made, count: number, signal?: AbortSignal): Promise<Decision | undefined>[] {
  return Array.from({ length: count }, () => limiter.wait('a', { ...(signal && { signal }) }).catch(() => undefined))
}

async function givenUp(controller: AbortController, all: readonly Promise<unknown>[]): Promise<void> {
  controller.abort(new Error('enough'))
  await Promise.all(all)
  await turns(12)
}

test('a thousand waits return their bookings when a worker closes its limiter', async () => {
  const made = fleet(DEEP)
  const all = waits(made, 1200)
  await turns()
  // No booking is further ahead than the time in which a burst refills.
  assert.equal(made.served.limiter.peek('a').retryAfterMs, 201_000)
  made.limiter.close()
  await turns()
  assert.equal(made.served.limiter.peek('a').retryAfterMs, 1000)
  await Promise.all(all.slice(200))
  assert.equal(listeners(made), 0)
})

test('the returns of cancelled waits come after pending bookings, so that everything is returned', async () => {
  const made = fleet(TEN)
  const controller = new AbortController()
  await made.limiter.take('a', 10)
  const all = waits(made, 5, controller.signal)
  await turns()
  assert.equal(made.served.limiter.peek('a').retryAfterMs, 6000)
  all.push(...waits(made, 1, controller.signal))
  await givenUp(controller, all)
  assert.equal(made.served.limiter.peek('a').retryAfterMs, 1000)
})

test('takes on their way when a worker closes its limiter are answered, or decided as in an outage: none is rejected', async () => {
  const made = fleet(SLOW, { worker: { outage: 'closed', timeout: 60_000 } })
  await made.limiter.peek('a')
  const heard = made.limiter.take('a')
  made.limiter.close()
  assert.equal((await heard).allowed, true)
  const deaf = fleet(SLOW, { worker: { outage: 'closed', timeout: 60_000 } })
  await deaf.limiter.peek('a')
  deaf.pair.cut(true)
  const [take, peek] = [deaf.limiter.take('a'), deaf.limiter.peek('a')]
  deaf.limiter.close()
  await turns()
  deaf.clock.advance(5000)
  for (const decision of [await take, await peek]) assert.deepEqual([decision.allowed, decision.source], [false, 'outage'])
})

test('a booking that is on its way when a limiter is closed comes back', async () => {
  const made = fleet(SLOW)
  await made.limiter.take('a')
  const all = waits(made, 3)
  made.limiter.close()
  await Promise.all(all)
  await turns(12)
  assert.equal(made.served.limiter.peek('a').retryAfterMs, 1000)
  assert.equal(listeners(made), 0)
})

test('a lease in flight when a limiter closes serves the takes that wait for it, and the rest is returned', async () => {
  const made = fleet(HUNDRED)
  await turns()
  const taking = Promise.all(Array.from({ length: 8 }, () => made.limiter.take('a', 5)))
  made.limiter.close()
  const passed = (await taking).filter(({ allowed }) => allowed).length
  assert.ok(passed > 0)
  await turns()
  made.clock.advance(1)
  await turns()
  assert.equal(made.served.limiter.peek('a').remaining, 100 - 5 * passed)
  assert.equal(listeners(made), 0)
})

test('tokens taken before a limiter closes can be returned after it', async () => {
  const made = fleet(concurrency({ limit: 3, ttl: '1h', name: 'p' }))
  const permit = await made.limiter.take('a', 2)
  made.limiter.close()
  assert.equal(listeners(made), 0)
  assert.equal(await permit.release(), true)
  assert.deepEqual([made.served.limiter.peek('a').remaining, listeners(made)], [3, 0])
})

test('a closed limiter listens for no longer than five seconds to a primary that does not answer', async () => {
  const made = fleet(SLOW, { worker: { outage: 'closed' } })
  await turns()
  made.pair.cut(true)
  const all = waits(made, 3)
  await turns()
  made.limiter.close()
  assert.equal(listeners(made), 1)
  made.clock.advance(4999)
  await turns()
  assert.equal(listeners(made), 1)
  made.clock.advance(1)
  await turns()
  assert.equal(listeners(made), 0)
  await Promise.all(all)
})

test('a closed limiter whose channel ends, or whose policy changes, has nothing to say to it', async () => {
  for (const end of ['disconnect', 'update'] as const) {
    const made = fleet(SLOW)
    await turns()
    const all = waits(made, 3)
    made.limiter.close()
    if (end === 'disconnect') made.pair.disconnect()
    else made.served.update(gcra({ limit: 2, window: '1s', burst: 1 }))
    await turns()
    assert.equal(listeners(made), 0)
    await Promise.all(all)
  }
})

test('who gave up after the primary changed its policy brings no fresh burst', async () => {
  const made = fleet(gcra({ limit: 1, window: '1s', burst: 10, name: 'p' }))
  const controller = new AbortController()
  const all = waits(made, 60, controller.signal)
  await turns()
  let passed = 0
  for (const wait of all) void wait.then((answer) => (passed += answer?.allowed ? 1 : 0))
  made.served.update(gcra({ limit: 1, window: '1s', burst: 20 }))
  await turns(200)
  assert.deepEqual([passed, made.served.limiter.peek('a').remaining], [20, 0])
  await givenUp(controller, all)
  assert.deepEqual([passed, made.served.limiter.peek('a').remaining], [20, 0])
})

test('what ends in a worker while its reset is on its way does not come off what is spent after it', async () => {
  const made = fleet(HUNDRED)
  await turns()
  for (let i = 0; i < 20; i++) await made.limiter.take('a')
  await turns()
  assert.ok(made.served.limiter.peek('a').remaining < 80, 'some is held')
  const sent = made.pair.toPrimary.length
  const resetting = made.limiter.reset('a')
  while (made.served.limiter.peek('a').remaining < 100) await turns(1)
  made.served.limiter.take('a', 50)
  made.clock.advance(100)
  await resetting
  await turns()
  assert.ok(made.pair.toPrimary.length > sent)
  assert.equal(made.served.limiter.peek('a').remaining, 50)
})
