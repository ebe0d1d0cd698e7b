import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { type HeldQuestion, HeldScripts } from 'sluicegate-testkit/redis/held-scripts.js'
import { allOf, concurrency, manualClock, slidingWindow, tokenBucket } from '../index.js'
import type { Policy } from '../policy/policy.js'
import type { Operation } from '../shared/backend.js'
import { CallGuard } from '../shared/calls/call-guard.js'
import { GuardedBackend } from '../shared/calls/guarded-backend.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import type { ScriptVerb } from '../shared/steps/script-call.js'
import { StepBackend } from '../shared/steps/step-backend.js'

const NOW_US = 5_000_000
const BUCKET = tokenBucket({ limit: 10, window: '1s' })
const PERMITS = concurrency({ limit: 5, ttl: '1m' })

/** What the store is asked after an answer that came when its caller had been given an outage. */
async function askedAfter(policy: Policy, operation: Operation, done = true): Promise<readonly HeldQuestion[]> {
  const clock = manualClock()
  const store = new HeldScripts()
  const backend = new StepBackend(store, encodingsOf(policy), (id) => `p${id}`)
  const guarded = new GuardedBackend(backend, new CallGuard(store, clock, 100), policy)
  const asked = assert.rejects(guarded.execute(operation), { code: 'OUTAGE' })
  clock.advance(100)
  await asked
  store.asked[0]?.answer(NOW_US, { done, debt: 9, waitUs: 700 })
  await turns()
  return store.asked.slice(1)
}

function reserve(): Operation {
  return { verb: 'reserve', key: 'k', cost: 3, id: 1, maxWaitUs: 1000 }
}

function take(): Operation {
  return { verb: 'take', key: 'k', cost: 3, id: 1 }
}

function verbsOf(questions: readonly HeldQuestion[]): readonly ScriptVerb[] {
  return questions.map(({ verb }) => verb)
}

test('a booking for a caller who has gone is cancelled as he would have done', async () => {
  const asked = await askedAfter(slidingWindow({ limit: 10, window: '1s' }), reserve())
  assert.deepEqual(verbsOf(asked), ['giveBack'])
  const back = asked[0]?.requests ?? []
  assert.deepEqual(
    back.map(({ booking }) => booking),
    [{ cost: 3, bookedUs: NOW_US, atUs: NOW_US + 700, debt: 9 }],
  )
  assert.deepEqual(
    back.map(({ key, tokens, mostUs }) => [key, tokens, mostUs]),
    [['k', 3, undefined]],
  )
})

test('a permit for a caller who has gone is released; of allOf only the permit', async () => {
  const asked = await askedAfter(allOf([BUCKET, PERMITS]), take())
  assert.deepEqual(verbsOf(asked), ['release'])
  assert.deepEqual(
    asked[0]?.requests.map(({ encoding, permit }) => `${encoding.name} ${permit}`),
    ['concurrency p1'],
  )
})

test('tokens of a take stay spent, and what was denied needs nothing', async () => {
  assert.deepEqual(await askedAfter(BUCKET, take()), [])
  assert.deepEqual(await askedAfter(BUCKET, reserve(), false), [])
  assert.deepEqual(await askedAfter(PERMITS, take(), false), [])
})

test('other operations are not taken back', async () => {
  const booked = {
    key: 'k',
    cost: 3,
    id: 1,
    allowed: true,
    waitUs: 0,
    order: 1,
    decision: { allowed: true, limit: 1, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, policy: 'p', source: 'store' },
  } as const
  const operations: readonly Operation[] = [
    { verb: 'peek', key: 'k', cost: 3 },
    { verb: 'refund', key: 'k', tokens: 3 },
    { verb: 'penalize', key: 'k', tokens: 3 },
    { verb: 'block', key: 'k', us: 3 },
    { verb: 'reset', key: 'k' },
    { verb: 'giveBack', key: 'k', charge: booked, tokens: 3 },
    { verb: 'release', key: 'k', cost: 3, id: 1 },
    { verb: 'heartbeat', key: 'k', cost: 3, id: 1 },
  ]
  for (const policy of [BUCKET, PERMITS]) {
    for (const operation of operations) assert.deepEqual(await askedAfter(policy, operation), [], operation.verb)
  }
})
