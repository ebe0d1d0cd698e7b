import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { allOf, fixedWindow, manualClock, tokenBucket } from 'sluicegate'
import { connectTo } from 'sluicegate-testkit/service/many-connections.js'
import { aGuard, runService, TWO_POLICIES } from 'sluicegate-testkit/service/running-service.js'
import { Engine } from '../engine/engine.js'
import { Latency } from '../engine/outcome.js'
import { HISTORY_LENGTH, percentilesBetween, Sampler } from './sampler.js'
import { Stream } from './stream.js'

const FILES = [
  ['/', 'text/html; charset=utf-8'],
  ['/page.js', 'text/javascript; charset=utf-8'],
  ['/page.css', 'text/css; charset=utf-8'],
  ['/icon.svg', 'image/svg+xml'],
] as const

test('the page and its files may load nothing but themselves, and no page may frame them', async (t) => {
  const { url } = await runService(t)
  for (const [path, type] of FILES) {
    const { status, headers } = await fetch(url + path)
    assert.deepEqual([status, headers.get('content-type'), headers.get('x-content-type-options')], [200, type, 'nosniff'])
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.doesNotMatch(policy, /unsafe|https?:|\*/)
    assert.equal(headers.get('cache-control'), 'no-store')
  }
})

test('the page holds no script or style of its own, and the licence of what it ships', async (t) => {
  const { url } = await runService(t)
  const html = await (await fetch(url)).text()
  assert.doesNotMatch(html, /<style|<script>|\son\w+=|style=|https?:/)
  for (const path of ['/page.js', '/page.css']) {
    const start = (await (await fetch(url + path)).text()).slice(0, 500)
    assert.match(start, /uPlot[\s\S]*MIT License[\s\S]*Copyright/)
  }
})

test('switched off, there is no page and no list of keys', async (t) => {
  const { url, engine } = await runService(t, `${TWO_POLICIES}dashboard: { keys: off }\n`)
  for (const path of ['/', '/page.js', '/events']) assert.equal((await fetch(url + path)).status, 404)
  const served = engine.policy('burst') ?? assert.fail()
  served.take('alice', 1)
  assert.deepEqual(served.hotKeys(10), { demand: [], denials: [] })
})

test('at most 32 pages are served at once, and a closed one makes room', async (t) => {
  const { url } = await runService(t, undefined, { sampleMs: 10 })
  const open = async (): Promise<{ status: string; close(): Promise<unknown> }> => {
    const socket = await connectTo(url)
    socket.write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n')
    const [first] = (await once(socket, 'data')) as [Buffer]
    return { status: first.toString().slice(9, 12), close: () => once(socket.destroy(), 'close') }
  }
  const pages = await Promise.all(Array.from({ length: 32 }, open))
  assert.ok(pages.every(({ status }) => status === '200'))
  assert.equal((await open()).status, '503')
  await pages[0]?.close()
  let again = await open()
  // The service learns of the close a moment later.
  while (again.status === '503') again = await open()
  assert.equal(again.status, '200')
})

test('percentiles are of the observations since the state before, within their bucket', () => {
  const latency = new Latency()
  for (let i = 0; i < 1_000; i++) latency.observe(5e-3)
  const before = latency.buckets.slice()
  assert.equal(percentilesBetween(before, latency.buckets), undefined)
  for (let i = 0; i < 990; i++) latency.observe(2e-6)
  for (let i = 0; i < 10; i++) latency.observe(2e-4)
  const { p50, p90, p99, p999 } = percentilesBetween(before, latency.buckets) ?? assert.fail()
  assert.ok(p50 > 1 && p50 < p90 && p90 < p99 && p99 <= 2.5, `${p50} ${p90} ${p99}`)
  assert.ok(p999 > 100 && p999 <= 250, String(p999))
})

test('what took longer than the last bound counts as that bound', () => {
  const latency = new Latency()
  latency.observe(3)
  assert.equal(percentilesBetween([], latency.buckets)?.p50, 500_000)
})

function setUp() {
  const policy = tokenBucket({ name: 'burst', limit: 5, window: '1m' })
  const engine = new Engine([{ policy, maxKeys: 100, onFull: 'evict' }], { clock: manualClock(0), hotKeys: 100 })
  return { served: engine.policy('burst') ?? assert.fail(), sampler: new Sampler(engine, 'shown') }
}

test('a sample has the totals, and the rates since the one before', () => {
  const { served, sampler } = setUp()
  for (let i = 0; i < 7; i++) served.take('alice', 1)
  served.take('alice', 6)
  const [first = assert.fail()] = sampler.sample().policies
  assert.deepEqual([first.allowed.total, first.denied.total, first.impossible.total, first.keysTracked], [5, 2, 1, 1])
  assert.ok(first.allowed.perSecond > 0 && first.allowed.perSecond <= 5_000)
  const [second = assert.fail()] = sampler.sample().policies
  assert.deepEqual([second.allowed.total, second.allowed.perSecond, second.denied.perSecond], [5, 0, 0])
})

test('a sample has each part of an all-of with the denials for which it was binding', () => {
  const parts = [tokenBucket({ name: 'burst', limit: 5, window: '1s' }), fixedWindow({ name: 'quota', limit: 2, window: 'day' })]
  const policy = allOf(parts, { name: 'both' })
  const engine = new Engine([{ policy, maxKeys: 100, onFull: 'evict' }], { clock: manualClock(0) })
  for (let i = 0; i < 3; i++) engine.policy('both')?.take('alice', 1)
  const [sample = assert.fail()] = new Sampler(engine, 'shown').sample().policies
  assert.equal(sample.description, 'all-of, 2 policies')
  assert.deepEqual(sample.parts, [
    { name: 'burst', description: 'token-bucket, 5 per 1s, burst 5', denied: 0 },
    { name: 'quota', description: 'fixed-window, 2 per day in UTC', denied: 1 },
  ])
  assert.deepEqual(setUp().sampler.sample().policies[0]?.parts, [])
})

test('the ten hottest keys are ranked', () => {
  const { served, sampler } = setUp()
  for (let i = 1; i <= 15; i++) for (let n = 0; n < i; n++) served.take(`key-${i}`, 1)
  const { demand = [], denials = [] } = sampler.sample().policies[0] ?? {}
  assert.deepEqual([demand.length, demand[0]], [10, { key: 'key-15', count: 15 }])
  assert.deepEqual(denials[0], { key: 'key-15', count: 10 })
})

test('the history is two minutes of samples and no more', () => {
  const { served, sampler } = setUp()
  served.take('alice', 1)
  for (let i = 0; i < HISTORY_LENGTH + 30; i++) sampler.sample()
  const { atS, policies } = sampler.history()
  assert.deepEqual([atS.length, policies[0]?.allowed.length, policies[0]?.denied.length], [120, 120, 120])
})

test('decisions made while no page was open are in the history, and not repeated as new', () => {
  const { served, sampler } = setUp()
  for (let i = 0; i < 3; i++) served.take('alice', 1)
  sampler.tick()
  const [sample = assert.fail()] = sampler.sample().policies
  assert.deepEqual([sample.allowed.total, sample.allowed.perSecond], [3, 0])
  const [before = 0, now] = sampler.history().policies[0]?.allowed ?? []
  assert.ok(before > 0)
  assert.equal(now, 0)
})

test('calls with their own rate are in the sample once there are any, with their keys', () => {
  const engine = new Engine([], { clock: manualClock(0), hotKeys: 10 })
  const sampler = new Sampler(engine, 'shown')
  assert.deepEqual(sampler.sample().policies, [])
  for (let i = 0; i < 3; i++) engine.callRates.throttle('crawler', { maxBurst: 0, count: 1, periodS: 60 }, 1)
  const [{ name, description, allowed, denied, keysTracked, parts, demand, denials } = assert.fail()] = sampler.sample().policies
  assert.deepEqual([name, description, keysTracked, parts], ['CL.THROTTLE', 'the rate comes with each call', 1, []])
  assert.deepEqual([allowed.total, denied.total], [1, 2])
  assert.deepEqual([demand, denials], [[{ key: 'crawler', count: 3 }], [{ key: 'crawler', count: 2 }]])
  assert.deepEqual(
    sampler.history().policies.map((each) => each.name),
    ['CL.THROTTLE'],
  )
})

describe('stream', () => {
  /** A stream with one reader, and a turn of sending: a long message, and time for the sockets. */
  async function setUp(t: TestContext) {
    const stream = new Stream(aGuard())
    const server = createServer((_, response) => stream.add(response, {}, 'first')).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = await connectTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    t.after(() => {
      socket.destroy()
      server.close()
    })
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    while (!stream.isRead) await setImmediate()
    const turn = async (): Promise<void> => {
      stream.send('x'.repeat(1_000_000))
      await setImmediate()
    }
    return { stream, socket, turn }
  }

  test('a reader that never reads is disconnected', async (t) => {
    const { stream, turn } = await setUp(t)
    for (let turns = 0; stream.isRead; turns++) {
      await turn()
      assert.ok(turns < 1_000, 'it is still there')
    }
  })

  test('a reader that reads stays, however long the messages', async (t) => {
    const { stream, socket, turn } = await setUp(t)
    let bytes = 0
    socket.on('data', (chunk) => {
      bytes += chunk.length
    })
    for (let sent = 0; bytes < 50_000_000; sent++) {
      const before = bytes
      await turn()
      while (bytes < before + 500_000) await setImmediate()
      assert.ok(sent < 1_000)
    }
    assert.ok(stream.isRead)
  })
})
