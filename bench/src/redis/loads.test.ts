import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closedLoop } from './closed-loop.js'
import type { FleetContender } from './fleet-contender.js'
import { paced } from './paced.js'

const passed = (answer: unknown): boolean => answer === true

test('a caller has one question at a time, and asks about its own key', async () => {
  const open = new Map<string, number>()
  let most = 0
  const contender: FleetContender = {
    async take(key) {
      const now = (open.get(key) ?? 0) + 1
      open.set(key, now)
      most = Math.max(most, now)
      await new Promise(setImmediate)
      open.set(key, (open.get(key) as number) - 1)
      return key !== 'b'
    },
    passed,
    awaited: true,
  }
  const stint = await closedLoop(contender, ['a', 'b'], [0, 1, 1], 20)
  assert.equal(most, 2)
  assert.equal(open.get('a'), 0)
  assert.ok((stint.admitted[0] as number) > 0)
  assert.equal(stint.admitted[1], 0)
  assert.equal(stint.all?.timed, stint.takes)
  assert.equal(stint.admits?.timed, stint.admitted[0])
})

test('who decides at once does not keep others from their turn', async () => {
  let later = 0
  const contender: FleetContender = {
    take: (key) => (key === 'later' ? new Promise((resolve) => setImmediate(() => resolve(++later > 0))) : false),
    passed,
    awaited: false,
  }
  const stint = await closedLoop(contender, ['at once', 'later'], [0, 1], 20)
  assert.ok(later > 0)
  assert.equal(stint.admitted[1], later)
  assert.ok(stint.takes > later)
})

test('a rejection is a denial, an error the end of the run', async () => {
  const rejecting = (reason: unknown): FleetContender => ({ take: () => Promise.reject(reason), passed, awaited: true })
  const denied = await closedLoop(rejecting({ msBeforeNext: 1 }), ['a'], [0], 5)
  assert.ok(denied.takes > 0)
  assert.deepEqual(denied.admitted, [0])
  await assert.rejects(closedLoop(rejecting(new Error('lost')), ['a'], [0], 5), /lost/)
  await assert.rejects(paced(rejecting(new Error('lost')), ['a'], [0], 5, 1_000), /lost/)
})

test('a stall weighs on all who were due during it', async () => {
  let asked = 0
  const contender: FleetContender = {
    take() {
      if (++asked === 50) for (const untilMs = performance.now() + 60; performance.now() < untilMs; );
      return true
    },
    passed,
    awaited: false,
  }
  const stint = await paced(contender, ['a'], [0], 200, 1_000)
  assert.equal(stint.takes, 200)
  assert.deepEqual(stint.admitted, [200])
  // 60 were due meanwhile: of 200 that is more than the upper quarter, and the slowest waited for all of it.
  assert.ok((stint.all?.maxNs as number) >= 59e6)
  assert.ok((stint.all?.meanNs as number) >= 5e6, `${stint.all?.meanNs}`)
})
