import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Fault, FaultProxy, RedisProcess, until } from 'sluicegate-testkit'
import type { FleetLimiter } from '../fleet/fleet-limiter.js'
import { concurrency } from '../policy/concurrency-policy.js'
import type { Policy } from '../policy/policy.js'
import { gcra, tokenBucket } from '../policy/rate-policy.js'
import { createRedisLimiter, type RedisLimiterOptions } from '../redis/create-redis-limiter.js'
import { turns } from '../testing/channel-pair.js'
import { fleet } from '../testing/cluster-fixture.js'
import { SERVER_CLIENTS } from '../testing/redis-clients.js'
import { limitedFetch } from './limited-fetch.js'
import type { OutboundOptions } from './outbound-options.js'

// Calls of a host by processes that share its budget in Redis. Nothing of the budgets by the hour comes back while a test runs.

const HOUR_MS = 3_600_000
/** Of what is cut off on purpose. */
const SHORT_MS = 300
const MODES = ['exact', 'leased'] as const
const [NODE_REDIS] = SERVER_CLIENTS

let server: RedisProcess
let proxy: FaultProxy
before(async () => {
  server = await RedisProcess.start()
  proxy = await FaultProxy.before(server)
})
after(async () => {
  await proxy.stop()
  await server.stop()
})

type LimiterOptions = Omit<RedisLimiterOptions, 'client'>

/** A process of a fleet: a client of its own, behind the proxy. */
async function member(policy: Policy, options: LimiterOptions) {
  const open = await (NODE_REDIS as (typeof SERVER_CLIENTS)[0]).open([proxy])
  const limiter = createRedisLimiter(policy, { client: open.client, timeoutMs: 2_000, ...options }) as FleetLimiter
  return {
    limiter,
    async [Symbol.asyncDispose]() {
      limiter.close()
      await open[Symbol.asyncDispose]()
    },
  }
}

/** A host that notes who came when. */
class Host {
  readonly paths: string[] = []
  readonly times: number[] = []
  underWay = 0
  most = 0
  private readonly answer: (path: string) => Response | Promise<Response>

  constructor(answer: (path: string) => Response | Promise<Response> = () => new Response('ok')) {
    this.answer = answer
  }

  readonly fetch = async (url: string, _init?: RequestInit): Promise<Response> => {
    const { pathname } = new URL(url)
    this.paths.push(pathname)
    this.times.push(performance.now())
    this.most = Math.max(this.most, ++this.underWay)
    try {
      return await this.answer(pathname)
    } finally {
      this.underWay--
    }
  }

  limited(limiter: FleetLimiter, options: OutboundOptions = {}): typeof this.fetch & { close(): void } {
    return limitedFetch(this.fetch, { limiter, ...options })
  }
}

async function withFault<Value>(fault: Fault, during: () => Promise<Value>): Promise<Value> {
  proxy.set(fault)
  try {
    return await during()
  } finally {
    proxy.set({ kind: 'none' })
  }
}

async function untilOut(limiter: FleetLimiter): Promise<void> {
  await until('it is an outage', async () => (await limiter.peek('another')).source === 'outage' && limiter.stats().outages > 0)
}

for (const mode of MODES) {
  test(`${mode}: two processes keep one budget, each in the order of its calls`, async () => {
    const policy = tokenBucket({ limit: 50, window: '1s', burst: 5, name: `shared ${mode}` })
    await using one = await member(policy, { mode })
    await using other = await member(policy, { mode })
    const host = new Host()
    const fromMs = performance.now()
    const sides = [one, other].map(({ limiter }) => host.limited(limiter))
    const calls = sides.flatMap((polite, side) => Array.from({ length: 30 }, (_, i) => polite(`http://a/${side}/${i}`)))
    await Promise.all(calls)
    for (const side of [0, 1]) {
      const own = host.paths.filter((path) => path.startsWith(`/${side}/`))
      assert.deepEqual(
        own,
        Array.from({ length: 30 }, (_, i) => `/${side}/${i}`),
      )
    }
    for (const [i, atMs] of host.times.entries()) {
      assert.ok(i + 1 <= 5 + (50 * (atMs - fromMs)) / 1000 + 1, `the ${i + 1}th after ${atMs - fromMs} ms`)
    }
  })

  test(`${mode}: with maxWaitMs 0 a request goes if there is a token, else not at all`, async () => {
    await using one = await member(tokenBucket({ limit: 2, window: '1h', name: `hasty ${mode}` }), { mode })
    const host = new Host()
    const polite = host.limited(one.limiter, { maxWaitMs: 0 })
    const calls = await withFault({ kind: 'latency', delayMs: 5 }, () =>
      Promise.allSettled([1, 2, 3, 4].map((i) => polite(`http://a/${i}`))),
    )
    assert.deepEqual(
      calls.map((call) => (call.status === 'rejected' ? call.reason.code : call.value.status)),
      [200, 200, 'WAIT_TOO_LONG', 'WAIT_TOO_LONG'],
    )
  })

  test(`${mode}: as long as there are tokens nobody waits for another's round trip`, async () => {
    await using one = await member(tokenBucket({ limit: 400, window: '1h', name: `wide ${mode}` }), { mode })
    const host = new Host()
    const polite = host.limited(one.limiter)
    const fromMs = performance.now()
    await withFault({ kind: 'latency', delayMs: 10 }, () => Promise.all(Array.from({ length: 300 }, (_, i) => polite(`http://a/${i}`))))
    // One after another they would take six seconds.
    assert.ok(performance.now() - fromMs < 3_000, `${performance.now() - fromMs} ms`)
    assert.equal(host.paths.length, 300)
  })

  test(`${mode}: an outage without a share is waited for, and told as what it is to those who do not wait as long`, async () => {
    await using one = await member(tokenBucket({ limit: 100, window: '1s', name: `closed ${mode}` }), {
      mode,
      outage: 'closed',
      timeoutMs: SHORT_MS,
    })
    const host = new Host()
    const polite = host.limited(one.limiter)
    assert.equal((await polite('http://a/0')).status, 200)
    const calls = await withFault({ kind: 'cut' }, async () => {
      await untilOut(one.limiter)
      const { outageDecisions } = one.limiter.stats()
      const waiting = [1, 2, 3, 4, 5].map((i) => polite(`http://a/${i}`))
      await assert.rejects(host.limited(one.limiter, { maxWaitMs: 20 })('http://a/'), { name: 'OutboundError', code: 'OUTAGE' })
      await assert.rejects(host.limited(one.limiter, { maxWaitMs: 0 })('http://a/'), { name: 'OutboundError', code: 'OUTAGE' })
      await until('they have asked again', () => one.limiter.stats().outageDecisions > outageDecisions + 4)
      assert.equal(host.paths.length, 1)
      return waiting
    })
    assert.ok((await Promise.all(calls)).every(({ status }) => status === 200))
  })

  test(`${mode}: in an outage all go where all may`, async () => {
    await using one = await member(tokenBucket({ limit: 1, window: '1h', name: `open ${mode}` }), {
      mode,
      outage: 'open',
      timeoutMs: SHORT_MS,
    })
    const host = new Host()
    const polite = host.limited(one.limiter)
    const calls = [0, 1, 2, 3, 4, 5].map((i) => polite(`http://a/${i}`))
    await until('the first has gone', () => host.paths.length === 1)
    await withFault({ kind: 'cut' }, async () => {
      await untilOut(one.limiter)
      calls.push(polite('http://b/'))
      // Whoever was booked before sleeps for the time that the store told.
      assert.equal((await (calls.at(-1) as Promise<Response>)).status, 200)
    })
    polite.close()
    await Promise.allSettled(calls)
  })

  test(`${mode}: those who wait for a share go by the whole budget once the store is back`, async () => {
    const policy = tokenBucket({ limit: 10, window: '1s', burst: 1, name: `local ${mode}` })
    await using one = await member(policy, { mode, localShare: 0.001, timeoutMs: SHORT_MS })
    const host = new Host()
    const polite = host.limited(one.limiter)
    const calls = await withFault({ kind: 'cut' }, async () => {
      await untilOut(one.limiter)
      const waiting = [1, 2, 3, 4, 5].map((i) => polite(`http://a/${i}`))
      const { outageDecisions } = one.limiter.stats()
      await until('the share is spent', () => one.limiter.stats().outageDecisions > outageDecisions || host.paths.length > 0)
      return waiting
    })
    const fromMs = performance.now()
    // A token of the share comes after 100 seconds.
    await Promise.all(calls)
    assert.ok(performance.now() - fromMs < 20_000)
  })

  test(`${mode}: when the limiter is closed all who wait hear of it`, async () => {
    await using one = await member(tokenBucket({ limit: 1, window: '1h', name: `closing ${mode}` }), { mode })
    const host = new Host()
    const polite = host.limited(one.limiter)
    await polite('http://a/0')
    const calls = [1, 2, 3].map((i) => assert.rejects(polite(`http://a/${i}`), { name: 'StoreError', code: 'CLOSED' }))
    await until('one has asked', async () => ((await one.limiter.peek('a')) as { retryAfterMs: number }).retryAfterMs > 0)
    one.limiter.close()
    await Promise.all(calls)
  })
}

test('who aborts while a token is asked for, or booked, leaves nothing spent', async () => {
  const policy = tokenBucket({ limit: 1, window: '1h', burst: 2, name: 'aborts' })
  await using one = await member(policy, { mode: 'exact' })
  const host = new Host()
  const polite = host.limited(one.limiter)
  const client = new AbortController()
  await withFault({ kind: 'latency', delayMs: 30 }, async () => {
    const asking = polite('http://a/1', { signal: client.signal })
    client.abort(new Error('gone'))
    await assert.rejects(asking, /gone/)
  })
  await until('it has come back', async () => (await one.limiter.peek('a')).remaining === 2)
  await polite('http://a/2')
  await polite('http://a/3')
  const later = new AbortController()
  const booked = polite('http://a/4', { signal: later.signal })
  const rejected = assert.rejects(booked, /gone/)
  await until('it is booked', async () => (await one.limiter.peek('a')).retryAfterMs > HOUR_MS)
  later.abort(new Error('gone'))
  await rejected
  await until('it has come back', async () => (await one.limiter.peek('a')).retryAfterMs <= HOUR_MS)
  assert.equal(host.paths.length, 2)
})

test('of those who wait the token of one that aborts goes to the next', async () => {
  await using one = await member(tokenBucket({ limit: 4, window: '1s', burst: 1, name: 'next' }), { mode: 'exact' })
  const host = new Host()
  const polite = host.limited(one.limiter)
  await polite('http://a/0')
  const client = new AbortController()
  const gone = assert.rejects(polite('http://a/gone', { signal: client.signal }), /gone/)
  const next = polite('http://a/next')
  const before = one.limiter.stats().chargedTokens
  await until('it is booked', () => one.limiter.stats().chargedTokens > before)
  client.abort(new Error('gone'))
  await gone
  await next
  assert.deepEqual(host.paths, ['/0', '/next'])
  assert.equal(one.limiter.stats().chargedTokens, before + 1)
})

test('one of a higher priority that comes while a token is asked for goes first, and one token is charged', async () => {
  await using one = await member(tokenBucket({ limit: 1, window: '1h', name: 'priority' }), { mode: 'exact' })
  const host = new Host()
  const polite = host.limited(one.limiter, { priority: ({ url }) => Number(url.searchParams.get('p')) })
  const calls = await withFault({ kind: 'latency', delayMs: 20 }, async () => {
    const waiting = [polite('http://a/low?p=0')]
    const { pieces } = proxy
    await until('it is asked for', () => proxy.pieces > pieces)
    waiting.push(polite('http://a/high?p=9'))
    await until('one has gone', () => host.paths.length > 0)
    return waiting
  })
  assert.deepEqual(host.paths, ['/high'])
  assert.equal(one.limiter.stats().admittedTokens, 1)
  polite.close()
  await Promise.allSettled(calls)
})

test('a token that was booked when the host asked for a pause is for another process', async () => {
  const policy = tokenBucket({ limit: 1, window: '1h', name: 'paused' })
  await using one = await member(policy, { mode: 'exact' })
  await using other = await member(policy, { mode: 'exact' })
  let answer = (_: Response): void => undefined
  const host = new Host(() => new Promise((resolve) => (answer = resolve)))
  const polite = host.limited(one.limiter, { attempts: 1 })
  const first = polite('http://a/1')
  await until('it has gone', () => host.paths.length === 1)
  const second = polite('http://a/2')
  await until('it is booked', async () => (await other.limiter.peek('a')).retryAfterMs > HOUR_MS)
  answer(new Response(null, { status: 429, headers: { 'Retry-After': '60' } }))
  assert.equal((await first).status, 429)
  await until('it has come back', async () => (await other.limiter.peek('a')).retryAfterMs <= HOUR_MS)
  polite.close()
  await assert.rejects(second, { code: 'CLOSED' })
})

test('two processes never have more under way than there are places, which come back with bodies, failures and aborts', async () => {
  const policy = concurrency({ limit: 2, ttl: '1m', name: 'places' })
  await using one = await member(policy, {})
  await using other = await member(policy, {})
  let open = 0
  let most = 0
  const host = new Host(async (path) => {
    most = Math.max(most, ++open)
    await new Promise((resolve) => setImmediate(resolve))
    if (path.endsWith('/bad')) {
      open--
      throw new Error('bad')
    }
    return new Response('body')
  })
  const client = new AbortController()
  const calls = [one, other].flatMap(({ limiter }) => {
    const polite = host.limited(limiter)
    return ['1', 'bad', '2', 'gone', '3'].map(async (path) => {
      const response = await polite(`http://a/${path}`, path === 'gone' ? { signal: client.signal } : undefined)
      open--
      await response.text()
    })
  })
  client.abort()
  const ends = await Promise.allSettled(calls)
  assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 6)
  assert.ok(most <= 2, `${most} at once`)
  await until('all places are free', async () => (await one.limiter.peek('a')).remaining === 2)
})

test('what is leased costs few calls', async () => {
  await using one = await member(tokenBucket({ limit: 2_000, window: '1s', name: 'leased' }), { mode: 'leased' })
  const host = new Host()
  const polite = host.limited(one.limiter)
  await withFault({ kind: 'latency', delayMs: 2 }, async () => {
    const caller = async (): Promise<void> => {
      for (let i = 0; i < 100; i++) await polite('http://a/')
    }
    await Promise.all(Array.from({ length: 10 }, caller))
  })
  assert.equal(host.paths.length, 1_000)
  assert.ok(one.limiter.stats().storeCalls < 500, `${one.limiter.stats().storeCalls} calls`)
})

test('a redirect to another host is charged there; a store that forgets its scripts is no fault', async () => {
  await using one = await member(tokenBucket({ limit: 10, window: '1h', name: 'elsewhere' }), { mode: 'exact' })
  const host = new Host((path) => {
    const there = { url: { value: 'http://b/here' }, redirected: { value: path === '/moved' } }
    return Object.defineProperties(new Response('ok'), there)
  })
  const polite = host.limited(one.limiter)
  await polite('http://a/1')
  await server.ask('SCRIPT', 'FLUSH')
  await polite('http://a/moved')
  await until('it is charged', async () => (await one.limiter.peek('b')).remaining === 9)
  assert.equal((await one.limiter.peek('a')).remaining, 8)
})

test('over processes of a machine the order is kept, and who aborts leaves nothing spent', async () => {
  const { clock, limiter } = fleet(gcra({ limit: 10, window: '1s', burst: 1 }))
  const host = new Host()
  const polite = limitedFetch(host.fetch, { limiter, clock })
  const client = new AbortController()
  const calls = [0, 1, 2].map((i) => polite(`http://a/${i}`))
  const gone = assert.rejects(polite('http://a/gone', { signal: client.signal }), /gone/)
  calls.push(polite('http://a/3'))
  for (let step = 0; step < 60; step++) {
    if (step === 25) client.abort(new Error('gone'))
    await turns()
    clock.advance(10)
  }
  await Promise.all([...calls, gone])
  assert.deepEqual(host.paths, ['/0', '/1', '/2', '/3'])
  assert.equal((await limiter.peek('a')).remaining, 1)
  const waiting = assert.rejects(Promise.all([polite('http://a/4'), polite('http://a/5')]), { name: 'StoreError', code: 'CLOSED' })
  await turns()
  limiter.close()
  await waiting
})
