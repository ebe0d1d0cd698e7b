import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog } from '../index.js'
import { primary } from './primary.js'
import { type ServeOptions, serveLimiter } from './serve-limiter.js'

const TEN = fixedWindow({ limit: 10, window: '1h', name: 'ten' })

/** Messages that a foreign or hostile sender may send. */
const STRANGE: readonly unknown[] = [
  null,
  0,
  'sluicegate:ask',
  [],
  {},
  ['sluicegate:ask'],
  ['sluicegate:ask', 'ten'],
  ['sluicegate:ask', 'ten', 1, null],
  ['sluicegate:ask', 'ten', 1, {}],
  ['sluicegate:ask', 'ten', 1, [null, 1, 'x', [], {}]],
  ['sluicegate:ask', 'another', 1, [[1, 'take', 'a', 1]]],
  ['sluicegate:ask', null, 1, [[1, 'take', 'a', 1]]],
  [
    'sluicegate:ask',
    'ten',
    1,
    [
      [1.5, 'take', 'a', 1],
      ['1', 'take', 'a', 1],
      [null, 'take', 'a', 1],
    ],
  ],
  ['sluicegate:ask', 'ten', 1, Array.from({ length: 20_000 }, (_, i) => [i, 'take', 'a', 1])],
  ['sluicegate:answer', 'ten', 1, [[1, 1, 1, 1, 1, 1]]],
  ['sluicegate:terms', 'ten', 1, TEN, 0],
]

/** Requests that are none. */
const WRONG: readonly (readonly unknown[])[] = [
  [],
  ['nothing'],
  ['__proto__'],
  ['constructor', 'a', 1],
  ['take'],
  ['take', '', 1],
  ['take', { toString: 'x' }, 1],
  ['take', 'a', -1],
  ['take', 'a', 0.5],
  ['take', 'a', '1'],
  ['take', ['a'], 1],
  ['take', 'a'.repeat(2000), 1],
  ['peek', 7],
  ['refund', 'a', null],
  ['penalize', 'a', {}],
  ['charge', 'a', 3],
  ['charge', 'a', [-3]],
  ['charge', 'a', ['x']],
  ['block', 'a', -5],
  ['block', 'a', 'for ever'],
  ['reserve', 'a', 1],
  ['reserve', 'a', 1, -1],
  ['reserve', 'a', 1, null],
  ['lease', 'a', -1, 1, 0],
  ['lease', 'a', 'x', 1, 0],
  ['lease', 'a', 1, 0, 0],
  ['giveBack', '', {}, {}],
  ['update', null],
  ['update', { algorithm: 'fixed-window' }],
  ['update', { algorithm: 'gcra', limit: 1, windowMs: 1, burst: 1, name: 'ten' }],
]

test('messages of others, and messages that are none of the kind they say, change nothing', async () => {
  const { pair, served } = fleet(TEN, { serve: { mode: 'exact' } })
  await turns()
  const answers = pair.toWorker.length
  for (const message of STRANGE) pair.worker.emit('message', message)
  await turns()
  const more = pair.toWorker.slice(answers).filter((message) => JSON.stringify(message) !== '["sluicegate:answer","ten",1,[]]')
  // Only requests for a policy that is not served here get that error.
  const unserved = [1, 'NAME_UNKNOWN', 'the primary serves no policy "another"; it serves: "ten"']
  assert.deepEqual(more, [['sluicegate:answer', 'another', 1, [unserved]]])
  assert.equal(served.limiter.peek('a').remaining, 10)
})

for (const mode of ['exact', 'leased'] as const) {
  test(`${mode}: a wrong request is answered with an error, and changes nothing`, async () => {
    const { pair, served } = fleet(TEN, { serve: { mode } })
    await turns()
    for (const [i, request] of WRONG.entries()) {
      pair.worker.emit('message', ['sluicegate:ask', 'ten', 1, [[1000 + i, ...request]]])
      const [, , , [answer]] = pair.toWorker.at(-1) as [string, string, number, unknown[][]]
      assert.equal(answer?.[0], 1000 + i)
      const isHarmless = typeof answer[1] === 'string' || ['lease', 'giveBack'].includes(String(request[0]))
      assert.ok(isHarmless, JSON.stringify([request, answer]))
    }
    assert.equal(served.limiter.peek('a').remaining, 10)
    assert.deepEqual(served.policy, TEN)
  })
}

const VERBS = 'hello update take peek refund penalize charge block reset lease reserve redeem giveBack release heartbeat constructor'.split(
  ' ',
)
const POLICIES = [
  TEN,
  gcra({ limit: 1000, window: '1s', name: 'ten' }),
  slidingLog({ limit: 100, window: '10s', name: 'ten' }),
  concurrency({ limit: 5, ttl: '1s', name: 'ten' }),
  allOf([TEN, concurrency({ limit: 5, ttl: '1s' })], { name: 'ten' }),
]

function strangeValue(random: Random): unknown {
  return random.pick<() => unknown>([
    () => random.integer(-3, 20),
    () => random.integer(0, 100),
    () => random.pick([Number.NaN, Number.POSITIVE_INFINITY, 1e308, 2 ** 53, -0, 0.5, 2 ** 31, 1e15, 10n]),
    () => random.pick(['a', '', 'b'.repeat(1025), null, undefined, true, new Map([[1, 2]]), new Date(Number.NaN)]),
    () => [random.pick(['a', 3]), random.pick(['b', -1])],
    () => random.pick(POLICIES),
    () => ({
      algorithm: random.pick(['gcra', 'all-of']),
      limit: strangeValue(random),
      windowMs: 10,
      burst: 1,
      policies: [strangeValue(random)],
    }),
  ])()
}

test('whatever a worker sends, the primary answers with numbers that can be sent, or with an error that has a code', () => {
  const random = new Random(7)
  for (let round = 0; round < 60; round++) {
    const { pair, served } = fleet(random.pick(POLICIES), { serve: { maxKeys: 16 }, worker: { outage: 'closed' } })
    for (let id = 1; id <= 100; id++) {
      const key = random.chance(0.7) ? 'a' : strangeValue(random)
      const request = [id, random.pick(VERBS), key, ...[1, 2, 3].map(() => strangeValue(random))]
      pair.worker.emit('message', ['sluicegate:ask', 'ten', 1, [request]])
      const [, , , [answer]] = pair.toWorker.at(-1) as [string, string, number, unknown[][]]
      const [own, first, ...rest] = answer ?? []
      assert.equal(own, id)
      // An unexpected error would be an outage.
      const isError = typeof first === 'string' && first !== 'OUTAGE'
      assert.ok(isError || [first ?? 0, ...rest].every(Number.isFinite), JSON.stringify(answer))
    }
    pair.die()
    served.close()
  }
})

test('a worker leaves messages of others alone, and takes no nonsense for an answer', async () => {
  const { pair, limiter, served } = fleet(TEN, { serve: { mode: 'exact' } })
  const seen: unknown[] = []
  pair.parent.on('message', (message) => seen.push(message))
  for (const message of STRANGE) pair.parent.emit('message', message)
  assert.deepEqual(seen, STRANGE)
  const asked = limiter.take('a')
  pair.parent.emit('message', ['sluicegate:answer', 'ten', 1, [[2, 'x'], [2, null], 5, null]])
  const decision = await asked
  assert.equal(decision.allowed, true)
  assert.ok(['store', 'outage'].includes(decision.source))
  assert.equal((await limiter.take('b')).source, 'store')
  served.close()
})

test('all that is asked in a turn goes in one message, and comes back in one', async () => {
  const { pair, limiter } = fleet(TEN, { serve: { mode: 'exact' } })
  await turns()
  const [asked, answered] = [pair.toPrimary.length, pair.toWorker.length]
  const all = await Promise.all(['a', 'b', 'a', 'c'].map((key) => limiter.take(key)))
  assert.deepEqual(
    all.map(({ remaining }) => remaining),
    [9, 9, 8, 9],
  )
  assert.deepEqual([pair.toPrimary.length - asked, pair.toWorker.length - answered], [1, 1])
})

test('misuse throws in the process that causes it', () => {
  const { pair } = fleet(TEN)
  assert.throws(() => createLimiter(TEN, { store: primary({ process: pair.parent }) }), { code: 'NAME_INVALID' })
  assert.throws(() => serveLimiter(TEN).serve(pair.worker), { code: 'NAME_INVALID' })
  assert.throws(() => createLimiter(TEN, { store: primary() }), { code: 'OPTION_INVALID', option: 'process' })
  assert.throws(() => createLimiter(TEN, { store: primary({ process: pair.parent }), share: 2 }), {
    code: 'OPTION_INVALID',
    option: 'share',
  })
  assert.throws(() => primary({ prozess: pair.parent } as never), { code: 'OPTION_UNKNOWN' })
  assert.throws(() => serveLimiter(TEN, { mode: 'loose' } as unknown as ServeOptions), { code: 'OPTION_INVALID', option: 'mode' })
  assert.throws(() => serveLimiter(TEN, { cluster: {} } as unknown as ServeOptions), { code: 'OPTION_INVALID', option: 'cluster' })
  assert.throws(() => serveLimiter(TEN, { lease: 0 }), { code: 'DURATION_INVALID', option: 'lease' })
  assert.throws(() => serveLimiter({} as Policy), { code: 'POLICY_INVALID' })
})
