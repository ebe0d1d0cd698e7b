import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeptStorage } from 'sluicegate-testkit/workers/kept-storage.js'
import { allOf } from '../policy/all-of.js'
import { concurrency, fixedWindow, slidingLog, tokenBucket } from '../policy/single-policy.js'
import { manualClock } from '../time/clock.js'
import { type LimiterObject, type LimiterObjectOptions, limiterObject } from './limiter-object.js'

const bucket = tokenBucket({ limit: 10, window: '10s', name: 'api' })
const HOUR_MS = 3_600_000

function setUp(policies = [bucket], options: LimiterObjectOptions = {}) {
  const clock = manualClock(HOUR_MS)
  const storage = new KeptStorage()
  const Made = limiterObject(policies, { mode: 'exact', ...options, clock })
  let id = 0
  let object: LimiterObject
  const evict = async (): Promise<void> => {
    const { state } = storage
    storage.openGate()
    object = new Made(state)
    await state.ready
  }
  /** As the runtime answers: when all is stored; where that fails not at all, and the object begins again. */
  const post = async (body: string): Promise<Response> => {
    const response = await object.fetch(new Request('https://limiter/', { method: 'POST', body }))
    const isStored = await storage.gate.then(
      () => true,
      () => false,
    )
    if (isStored) return response
    await evict()
    return new Response('the object has failed', { status: 500 })
  }
  const send = async (requests: readonly (readonly unknown[])[], name = 'api', sender = 'worker'): Promise<unknown[][]> => {
    const response = await post(JSON.stringify(['sluicegate:ask', name, 1, requests.map((each) => [++id, ...each]), sender]))
    assert.equal(response.status, 200, await response.clone().text())
    const [, , , answers] = (await response.json()) as [string, string, number, unknown[][]]
    return answers.map(([, ...content]) => content)
  }
  const take = async (key = 'ada', name = 'api'): Promise<boolean> => (await send([['take', key, 1]], name))[0]?.[0] === 1
  return { clock, storage, evict, post, send, take, alarm: () => object.alarm() }
}

async function admitted(take: () => Promise<boolean>, times: number): Promise<number> {
  let count = 0
  for (let i = 0; i < times; i++) if (await take()) count++
  return count
}

const POLICIES = [
  bucket,
  fixedWindow({ limit: 10, window: '10s', name: 'window' }),
  slidingLog({ limit: 10, window: '10s', name: 'log' }),
  allOf([tokenBucket({ limit: 10, window: '10s', name: 'one' }), fixedWindow({ limit: 100, window: '1h', name: 'two' })], { name: 'both' }),
]

for (const policy of POLICIES) {
  test(`an object that is evicted between any two takes admits what one in memory does: ${policy.name}`, async () => {
    const { evict, take } = setUp([policy])
    const count = await admitted(async () => {
      await evict()
      return take('ada', policy.name)
    }, 15)
    assert.equal(count, 10)
  })
}

test('an answer leaves when the state is stored: an object that is killed earlier has sent no answer', async () => {
  const { storage, evict, send, take } = setUp()
  await evict()
  let store: () => void = () => undefined
  storage.before = () => new Promise((resolve) => (store = resolve))
  let isAnswered = false
  const answer = send([['take', 'ada', 10]]).then(() => (isAnswered = true))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isAnswered, false)
  store()
  await answer
  storage.before = () => Promise.resolve()
  await evict()
  assert.equal(await take(), false)
})

test('what storage does not take is not admitted, and an object goes on from what is stored', async () => {
  const { storage, evict, post, take } = setUp()
  await evict()
  assert.equal(await admitted(take, 4), 4)
  storage.before = () => Promise.reject(new Error('the disk is full'))
  const response = await post(JSON.stringify(['sluicegate:ask', 'api', 1, [[1, 'take', 'ada', 6]], 'worker']))
  assert.equal(response.status, 500)
  storage.before = () => Promise.resolve()
  assert.equal(await admitted(take, 10), 6)
})

test('requests that come while an earlier one is being stored are decided at once, and each is stored before its answer', async () => {
  const { storage, evict, take } = setUp()
  await evict()
  const stores: (() => void)[] = []
  storage.before = () => new Promise((resolve) => stores.push(resolve))
  const answers = Array.from({ length: 15 }, () => take())
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(stores.length, 10, 'a denial is not stored')
  for (const store of stores) store()
  assert.equal((await Promise.all(answers)).filter(Boolean).length, 10)
})

test('a denial is not stored, and no peek is', async () => {
  const { storage, evict, send, take } = setUp()
  await evict()
  await send([['take', 'ada', 10]])
  const { puts } = storage
  assert.equal(await take(), false)
  await send([['peek', 'ada', 1]])
  assert.equal(storage.puts, puts)
})

test('a key that is only looked at is not stored, also where tokens are leased', async () => {
  const { clock, storage, evict, send } = setUp([tokenBucket({ limit: 100, window: '1s', name: 'api' })], { mode: 'leased' })
  await evict()
  await send([['lease', 'ada', 10, 1, 0]])
  const { puts } = storage
  for (let i = 0; i < 10; i++) {
    clock.advance(1_000)
    await send([['peek', 'ada', 1]])
  }
  assert.equal(storage.puts, puts)
})

test('the alarm deletes what is stored once all keys are full, and not before', async () => {
  const { clock, storage, evict, alarm, send, take } = setUp()
  await evict()
  await send([['take', 'ada', 5]])
  assert.equal(storage.alarmAtMs, HOUR_MS + 5_000)
  clock.advance(3_000)
  await take()
  clock.advance(2_000)
  await evict()
  await alarm()
  assert.equal(storage.alarmAtMs, HOUR_MS + 6_000)
  assert.ok(storage.entries.size > 0)
  clock.advance(1_000)
  await alarm()
  assert.equal(storage.entries.size, 0)
  assert.equal(await admitted(take, 15), 10)
  await evict()
  assert.equal(await take(), false, 'what is used after the alarm is stored again')
})

test('a take stores its key alone, of as many keys as there are', async () => {
  const { clock, storage, evict, take } = setUp([tokenBucket({ limit: 1000, window: '10s', name: 'api' })], { maxKeys: 1000 })
  await evict()
  for (let i = 0; i < 500; i++) await take(`key ${i}`)
  const put: string[][] = []
  const { put: stored } = storage
  storage.put = (entries) => {
    put.push(Object.keys(entries))
    return stored.call(storage, entries)
  }
  for (let i = 0; i < 50; i++) {
    await take(`key ${i % 3}`)
    clock.advance(15)
  }
  assert.equal(put.length, 50)
  assert.deepEqual(new Set(put.map(({ length }) => length)), new Set([1]))
  assert.equal(new Set(put.flat()).size, 3)
})

test('keys of any characters and of many bytes are as they were after an eviction', async () => {
  const log = slidingLog({ limit: 40_000, window: '1h', name: 'api' })
  const { clock, storage, evict, send } = setUp([log], { maxKeys: 10 })
  await evict()
  const keys = ['ada\n1', '\ud800', 'é'.repeat(1024), '__proto__', '0']
  for (const key of keys) await send([['take', key, 7]])
  for (let i = 0; i < 60; i++) {
    clock.advance(1_000)
    await send(Array.from({ length: 500 }, () => ['take', 'busy', 1]))
  }
  assert.ok(
    [...storage.entries.keys()].some((name) => name.endsWith('\n1') && name !== 'api\n1'),
    'a long key takes several entries',
  )
  await evict()
  for (const key of keys) assert.equal((await send([['peek', key, 1]]))[0]?.[2], 40_000 - 7, JSON.stringify(key.slice(0, 10)))
  assert.equal((await send([['peek', 'busy', 1]]))[0]?.[2], 40_000 - 30_000)
})

test('keys that made room for others leave storage too', async () => {
  const { storage, evict, take } = setUp([bucket], { maxKeys: 10 })
  await evict()
  for (let i = 0; i < 300; i++) await take(`key ${i}`)
  assert.ok(storage.entries.size < 80, `${storage.entries.size} entries`)
  await evict()
  assert.equal(await admitted(() => take('key 299'), 15), 9)
})

test('entries that are cut or none are passed over, and the other keys are as they were', async () => {
  const { storage, evict, take } = setUp()
  await evict()
  for (const key of ['ada', 'bob']) assert.equal(await admitted(() => take(key), 10), 10)
  const [first, second] = [...storage.entries.keys()] as [string, string]
  storage.entries.set(first, (storage.entries.get(first) as Uint8Array).slice(0, 5))
  storage.entries.set('api\nnone', new Uint8Array(3))
  storage.entries.set('api\n7', { count: 1 })
  await evict()
  assert.equal(await take('bob'), false, second)
  assert.equal(await take('ada'), true)
})

test('of several policies the alarm waits for the one whose key is full last', async () => {
  const { clock, storage, evict, alarm, take } = setUp([POLICIES[3] as typeof bucket])
  await evict()
  await take('ada', 'both')
  assert.equal(storage.alarmAtMs, 2 * HOUR_MS)
  clock.advance(1_000)
  await alarm()
  assert.ok(storage.entries.size > 0)
})

test('a block outlives eviction and alarms until it ends', async () => {
  const { clock, evict, alarm, send, take } = setUp()
  await evict()
  await send([['block', 'ada', 60_000_000]])
  for (const ms of [30_000, 29_999]) {
    clock.advance(ms)
    await alarm()
    await evict()
    assert.equal(await take(), false)
  }
  clock.advance(1)
  assert.equal(await take(), true)
})

test('a new limit of the same algorithm takes over what was spent; another algorithm begins anew', async (context) => {
  context.mock.method(process, 'emitWarning', () => undefined)
  const before = setUp()
  await before.evict()
  await before.send([['take', 'ada', 8]])
  const stored = [...before.storage.entries]
  const taken = async (policy: typeof bucket): Promise<number> => {
    const { storage, evict, take } = setUp([policy])
    for (const [key, value] of stored) storage.entries.set(key, value)
    await evict()
    return admitted(take, 30)
  }
  assert.equal(await taken(tokenBucket({ limit: 20, window: '10s', name: 'api' })), 12)
  assert.equal(await taken(fixedWindow({ limit: 20, window: '10s', name: 'api' }) as typeof bucket), 20)
})

test('a permit ends by its release, and after an eviction by its ttl', async () => {
  const policy = concurrency({ limit: 1, ttl: '30s', name: 'api' })
  const { clock, evict, send, take } = setUp([policy as unknown as typeof bucket])
  await evict()
  const id = 1
  assert.equal(await take(), true)
  assert.equal(await take(), false)
  assert.deepEqual(await send([['release', 'ada', id]]), [[1]])
  assert.equal(await take(), true)
  await evict()
  assert.deepEqual(await send([['release', 'ada', 4]]), [[0]])
  assert.equal(await take(), false)
  clock.advance(30_000)
  assert.equal(await take(), true)
})

const NOT_MESSAGES = [
  '',
  '{',
  'null',
  '[]',
  '["sluicegate:ask"]',
  '["sluicegate:ask","api",1,{},"w"]',
  '["sluicegate:ask","api",1,[],7]',
  '[]'.repeat(2 ** 22 + 1),
]

test('what is no message is refused, and no request gets an exception', async () => {
  const { evict, post, send } = setUp()
  await evict()
  for (const body of NOT_MESSAGES) assert.equal((await post(body)).status, 400, body.slice(0, 40))
  const tooMany = JSON.stringify(['sluicegate:ask', 'api', 1, Array.from({ length: 10_001 }, () => [1, 'peek', 'ada', 1]), 'w'])
  assert.equal((await post(tooMany)).status, 400)
  const refused = await send([
    ['take', 'k'.repeat(100_000), 1],
    ['take', { toString: 1 }, 1],
    ['take', ['ada', 'bob'], 1],
    ['take', 'ada', -1],
    ['lease', 'ada', 1e9, 1e9, 9],
    ['__proto__', 'ada'],
    ['update', bucket],
    ['setOverride', 'ada', bucket],
    ['release', 'ada', { valueOf: null }],
  ])
  assert.deepEqual(
    refused.map(([code]) => typeof code),
    ['string', 'string', 'string', 'string', 'number', 'string', 'string', 'string', 'number'],
  )
  const [[code] = []] = await send([['take', 'ada', 1]], 'other')
  assert.equal(code, 'NAME_UNKNOWN')
  const other = await post(JSON.stringify(['sluicegate:ask', 'api', 2, [[1, 'take', 'ada', 1]], 'w']))
  assert.match(await other.text(), /^\["sluicegate:answer","api",1,\[\[1,"VERSION_UNKNOWN","/)
})

test('keys beyond those of an object take no more memory or storage, and a spent key is not forgotten for them', async () => {
  const { storage, evict, send, take } = setUp([bucket], { maxKeys: 10, onFull: 'deny' })
  await evict()
  await send([['take', 'ada', 10]])
  for (let i = 0; i < 40; i++) await send(Array.from({ length: 50 }, (_, n) => ['take', `key ${i} ${n}`, 1]))
  assert.equal(await take(), false)
  const bytes = [...storage.entries.values()].reduce<number>((sum, each) => sum + (each instanceof Uint8Array ? each.length : 0), 0)
  assert.ok(bytes < 20_000, `${bytes} bytes are stored`)
  await evict()
  assert.equal(await take(), false)
})

test('limiters beyond those that an object remembers lose only their permits', async () => {
  const { evict, send, take } = setUp()
  await evict()
  for (let i = 0; i < 1_100; i++) await send([['peek', 'ada', 1]], 'api', `worker ${i}`)
  assert.equal(await admitted(take, 15), 10)
})

test('two policies of one name, and more keys than storage takes, are refused', () => {
  assert.throws(() => limiterObject([bucket, bucket]), { code: 'NAME_INVALID' })
  assert.throws(() => limiterObject([slidingLog({ limit: 100_000, window: '1h' })]), { code: 'RANGE_UNSUPPORTED' })
  assert.throws(() => limiterObject([bucket], { maxKeys: 0 }), { code: 'OPTION_INVALID' })
})
