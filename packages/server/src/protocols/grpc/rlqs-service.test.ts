import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:http2'
import { type TestContext, test } from 'node:test'
import { create, toBinary } from '@bufbuild/protobuf'
import { manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { FaultProxy, until } from 'sluicegate-testkit'
import { QuotaClient } from 'sluicegate-testkit/service/quota-client.js'
import { aGuard } from 'sluicegate-testkit/service/running-service.js'
import { GrpcTestClient, SimulatedEnvoy } from 'sluicegate-testkit/service/simulated-envoy.js'
import { Engine } from '../../engine/engine.js'
import { longestMs } from '../../quota/quota-budget.js'
import type { QuotaBounds } from '../../quota/quota-counts.js'
import { QuotaService } from '../../quota/quota-service.js'
import { GrpcService } from './grpc-service.js'
import { framed } from './message-reader.js'
import { RateLimitQuotaUsageReportsSchema } from './messages/envoy/service/rate_limit_quota/v3/rlqs.gen.js'
import { rlqsService } from './rlqs-service.js'
import { STATUS } from './status.js'

const TTL_S = 10
const POLICIES = `policies:
  team: { algorithm: token-bucket, limit: 100, window: 1s, burst: 30 }
quotas: { ttl: ${TTL_S}s, idle: 1h }
`
const BUCKET = { name: 'team' }
const RATE = 100
const BURST = 30

async function setUp(t: TestContext, { yaml = POLICIES, bounds = {} }: { yaml?: string; bounds?: Partial<QuotaBounds> } = {}) {
  const clock = manualClock(0)
  const config = parseConfig(yaml)
  const engine = new Engine(config.policies, { clock })
  const quotas = new QuotaService({
    engine,
    config: { rules: config.quotaRules, domains: config.domains },
    times: config.quotas,
    nowMs: () => clock.nowMs(),
    bounds,
  })
  const service = new GrpcService([rlqsService(quotas)], { guard: aGuard('grpc') })
  const url = await service.listen({ host: '127.0.0.1', port: 0 })
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= service.stop(1_000)
    return stopped
  }
  t.after(async () => {
    await stop()
    quotas.stop()
  })
  // What an earlier process had assigned has ended.
  clock.advance(longestMs(TTL_S))
  const connected = (): GrpcTestClient => {
    const client = new GrpcTestClient(url)
    t.after(() => client[Symbol.dispose]())
    return client
  }
  /** A data plane over its own connection. */
  const open = (): QuotaClient => new QuotaClient(connected())
  /** Until all reports were read, and all that was to be sent has arrived. */
  const settle = async (reports: number): Promise<void> => {
    await until('the reports are read', () => quotas.counts.reports === reports)
    // A tick of the timer may have planned before.
    clock.advance(60)
    quotas.tick()
    await until('the assignments have arrived', () => {
      quotas.tick()
      return quotas.unreadMessages === 0
    })
  }
  return { clock, engine, quotas, service, url, stop, open, connected, settle }
}

/** A data plane with its bucket and its requests. */
class Plane {
  readonly client: QuotaClient
  readonly envoy = new SimulatedEnvoy()
  admitted = 0
  #allowed = 0
  #denied = 0
  readonly #nowMs: () => number

  constructor(client: QuotaClient, nowMs: () => number) {
    this.client = client
    this.#nowMs = nowMs
    client.onAction = (_, assignment) => this.envoy.apply(assignment, nowMs() / 1_000)
  }

  request(requests: number): number {
    if (this.#nowMs() / 1_000 >= this.envoy.endsAt) this.envoy.expire()
    const admitted = this.envoy.admit(requests, this.#nowMs() / 1_000)
    this.admitted += admitted
    this.#allowed += admitted
    this.#denied += requests - admitted
    return admitted
  }

  report(): void {
    this.client.report('edge', { bucket: BUCKET, allowed: this.#allowed, denied: this.#denied })
    this.#allowed = 0
    this.#denied = 0
  }
}

/** The most by which any interval exceeded the rate. */
class Level {
  highest = 0
  #level = 0
  #atMs: number

  constructor(nowMs: number) {
    this.#atMs = nowMs
  }

  admit(tokens: number, nowMs: number): void {
    this.#level = Math.max(0, this.#level - (RATE * (nowMs - this.#atMs)) / 1_000) + tokens
    this.#atMs = nowMs
    this.highest = Math.max(this.highest, this.#level)
  }
}

test('data planes share one budget over their streams: together they never exceed the bound, and use nearly all of it', async (t) => {
  const { clock, quotas, open, settle } = await setUp(t)
  const planes = Array.from({ length: 4 }, () => new Plane(open(), () => clock.nowMs()))
  const level = new Level(clock.nowMs())
  let reports = 0
  const run = async (seconds: number, demands: readonly number[]): Promise<number> => {
    let admitted = 0
    for (let second = 0; second < seconds; second++) {
      for (const plane of planes.slice(0, demands.length)) plane.report()
      reports += demands.length
      await settle(reports)
      for (let step = 0; step < 50; step++) {
        clock.advance(20)
        for (const [i, plane] of planes.entries()) {
          const passed = plane.request((demands[i] ?? 0) / 50)
          admitted += passed
          level.admit(passed, clock.nowMs())
        }
      }
    }
    return admitted
  }
  await run(12, [400, 400, 50, 50])
  const shared = await run(10, [400, 400, 50, 50])
  assert.ok(shared > 0.9 * 10 * RATE, `${shared} of ${10 * RATE} passed`)
  // Two of them give up: their streams break, and what they had goes to the others.
  for (const { client } of planes.splice(0, 2)) client.cancel()
  await until('two streams are left', () => quotas.streams === 2)
  await run(TTL_S + 4, [400, 400])
  const taken = await run(8, [400, 400])
  assert.ok(taken > 0.9 * 8 * RATE, `${taken} of ${8 * RATE} passed`)
  const bound = BURST + 1 + 4
  assert.ok(level.highest <= bound, `${level.highest} of ${bound}`)
})

test('what a broken stream had is free when its assignment has ended, and not before', async (t) => {
  const { clock, quotas, open, settle } = await setUp(t)
  const first = open()
  first.report('edge', { bucket: BUCKET })
  await settle(1)
  clock.advance(1_000)
  first.report('edge', { bucket: BUCKET, allowed: 50, denied: 500 })
  await settle(2)
  const assigned = (): number => [...quotas.figures()][0]?.assignedPerSecond ?? 0
  first.cancel()
  await until('the stream is over', () => quotas.streams === 0)
  const before = assigned()
  assert.ok(before > 0.9 * RATE, `${before}`)
  clock.advance(TTL_S * 1_000)
  quotas.tick()
  assert.equal(assigned(), before, 'its data plane may still use it')
  clock.advance(longestMs(TTL_S))
  const second = open()
  second.report('edge', { bucket: BUCKET })
  await settle(3)
  await until('it is free', () => assigned() > 0 && assigned() < before)
  assert.equal(quotas.counts.of('team').returned.broken, 1)
  const latest = second.actions.at(-1)?.assignment
  assert.equal(latest?.kind, 'tokens')
})

test('assignments have a time to live, and a data plane that reports no more is asked to forget its bucket', async (t) => {
  const { clock, quotas, open, settle } = await setUp(t)
  const client = open()
  client.report('edge', { bucket: BUCKET })
  await settle(1)
  const { assignment } = client.actions[0] ?? assert.fail()
  assert.ok(assignment.kind === 'tokens' && assignment.ttlSeconds === TTL_S, JSON.stringify(assignment))
  clock.advance(3 * TTL_S * 1_000)
  await until('it is abandoned', () => client.actions.at(-1)?.assignment.kind === 'abandon')
  await until('that has arrived', () => quotas.unreadMessages === 0)
  // The next request begins again.
  client.report('', { bucket: BUCKET })
  await settle(2)
  await until('there is an assignment again', () => client.actions.at(-1)?.assignment.kind === 'tokens')
})

test('a reload changes budgets in force, ends those without a rule, and leaves others', async (t) => {
  const more = (team: string): string => `policies:
  team: { algorithm: token-bucket, limit: ${team}, window: 1s, burst: 30 }
  other: { algorithm: token-bucket, limit: 50, window: 1s }
`
  const rules = (...names: readonly string[]): string =>
    `quotas: { ttl: ${TTL_S}s, idle: 1h, rules: [${names.map((name) => `{ policy: ${name}, match: { name: ${name} } }`).join(', ')}] }\n`
  const { clock, engine, quotas, open, settle } = await setUp(t, { yaml: `${more('100')}${rules('team', 'other')}` })
  const use = (yaml: string): void => {
    const { policies, quotaRules, domains } = parseConfig(yaml)
    engine.prepare(policies)()
    quotas.use({ rules: quotaRules, domains })
  }
  const client = open()
  const team = { name: 'team' }
  const other = { name: 'other' }
  let reports = 0
  const report = async (): Promise<void> => {
    clock.advance(1_000)
    client.report('edge', { bucket: team, denied: 1_000 }, { bucket: other, denied: 1_000 })
    await settle(++reports)
  }
  const assigned = (): Record<string, number> =>
    Object.fromEntries(Array.from(quotas.figures(), ({ policy, assignedPerSecond }) => [policy, assignedPerSecond]))
  for (let second = 0; second < 5; second++) await report()
  assert.ok((assigned().team ?? 0) > 90 && (assigned().other ?? 0) > 45, JSON.stringify(assigned()))
  use(`${more('10')}${rules('team', 'other')}`)
  for (let second = 0; second < TTL_S + 3; second++) await report()
  assert.ok((assigned().team ?? 99) <= 10, JSON.stringify(assigned()))
  assert.ok((assigned().other ?? 0) > 45)
  use(`${more('10')}${rules('other')}`)
  await report()
  const last = client.actions.filter(({ bucket }) => bucket.name === 'team').at(-1)
  assert.equal(last?.assignment.kind, 'abandon')
  for (let second = 0; second < TTL_S + 3; second++) await report()
  assert.deepEqual(Object.keys(assigned()), ['other'])
  assert.ok(quotas.counts.refused.no_rule > 0)
})

test('64 streams that come and go leave nothing behind, and each data plane that stays gets its part', async (t) => {
  const { clock, quotas, connected, settle } = await setUp(t)
  const connections = Array.from({ length: 8 }, connected)
  const ids = (i: number): Record<string, string> => ({ name: 'team', tenant: `t${i % 6}` })
  let reports = 0
  let streams: QuotaClient[] = []
  for (let round = 0; round < 6; round++) {
    for (let i = streams.length; i < 64; i++) streams.push(new QuotaClient(connections[i % 8] as GrpcTestClient))
    for (const [i, stream] of streams.entries()) stream.report('edge', { bucket: ids(i), denied: 100 })
    reports += 64
    await settle(reports)
    clock.advance(1_000)
    assert.equal(quotas.streams, 64)
    const gone = streams.filter((_, i) => i % 3 === round % 3)
    streams = streams.filter((_, i) => i % 3 !== round % 3)
    for (const stream of gone) stream.cancel()
    await until('they are gone', () => quotas.streams === streams.length)
  }
  for (const { assignedPerSecond } of quotas.figures()) assert.ok(assignedPerSecond <= 6 * RATE, `${assignedPerSecond}`)
  for (const stream of streams) assert.notEqual(stream.actions.length, 0)
  for (const stream of streams) stream.cancel()
  await until('all streams are over', () => quotas.streams === 0)
  clock.advance(longestMs(TTL_S))
  await until('their parts are free', () => {
    clock.advance(1_000)
    return [...quotas.figures()].length === 0
  })
})

test('bounds hold for streams, buckets and reports, and others are served', async (t) => {
  const { clock, quotas, open, settle } = await setUp(t, {
    bounds: { maxStreams: 8, maxBuckets: 12, maxBucketsPerStream: 3, reportBurst: 20, reportsPerSecond: 1, idleStreamMs: 60_000 },
  })
  const client = open()
  const buckets = Array.from({ length: 5 }, (_, i) => ({ bucket: { name: 'team', i: `${i}` } }))
  client.report('edge', ...buckets)
  await settle(1)
  await until('three have a part', () => client.actions.length === 3)
  assert.equal(quotas.counts.refused.too_many_buckets, 2)
  client.report('', ...Array.from({ length: 20 }, () => buckets[0] ?? assert.fail()))
  await client.ended()
  assert.deepEqual(client.status, { code: STATUS.resourceExhausted, details: 'there are too many reports' })
  // One host has half of the places.
  const many = Array.from({ length: 5 }, open)
  for (const each of many) each.report('edge', { bucket: { unknown: 'x' } })
  await until('one has no place', () => many.some(({ status }) => status !== undefined))
  assert.equal(many.filter(({ status }) => status?.code === STATUS.unavailable).length, 1)
  assert.equal(quotas.streams, 4)
  clock.advance(60_000)
  await Promise.all(many.map((each) => each.ended()))
  assert.deepEqual([quotas.streams, quotas.counts.cuts.idle], [0, 4])
})

test('messages that are wrong end their stream with a status', async (t) => {
  const { open, url } = await setUp(t)
  const nameless = open()
  nameless.report('', { bucket: BUCKET })
  await nameless.ended()
  assert.deepEqual(nameless.status, { code: STATUS.invalidArgument, details: 'the first report must have a domain' })
  const moving = open()
  moving.report('edge', { bucket: BUCKET })
  moving.report('other', { bucket: BUCKET })
  await moving.ended()
  assert.equal(moving.status?.code, STATUS.invalidArgument)
  const large = open()
  large.report('edge', { bucket: { name: 'x'.repeat(140_000) } })
  await large.ended()
  assert.equal(large.status?.code, STATUS.resourceExhausted)
  const damaged = await rawStream(t, url)
  damaged.write(framed(Buffer.from([0x12, 0x7f, 1])))
  assert.equal(await statusOf(damaged), STATUS.invalidArgument)
})

const FIRST_REPORT = framed(
  toBinary(
    RateLimitQuotaUsageReportsSchema,
    create(RateLimitQuotaUsageReportsSchema, { domain: 'edge', bucketQuotaUsages: [{ bucketId: { bucket: BUCKET } }] }),
  ),
)

test('a data plane that does not read its assignments is cut off', async (t) => {
  const { clock, quotas, url } = await setUp(t)
  const stream = await rawStream(t, url, 1)
  stream.write(FIRST_REPORT)
  await until('its assignment is on its way', () => quotas.unreadMessages === 1)
  clock.advance(30_000)
  await until('it is cut off', () => quotas.counts.cuts.unread === 1 && quotas.streams === 0)
  stream.session?.destroy()
})

test('an assignment that has left has not arrived: its data plane is cut off when nothing comes back', async (t) => {
  const { clock, quotas, url, open, settle } = await setUp(t)
  const proxy = await FaultProxy.before({ host: '127.0.0.1', port: Number(url.split(':').at(-1)) })
  t.after(() => proxy.stop())
  const stream = await rawStream(t, `http://127.0.0.1:${proxy.port}`)
  await until('the stream is open', () => quotas.streams === 1)
  proxy.set({ kind: 'half-open' })
  stream.write(FIRST_REPORT)
  await until('its assignment has left', () => quotas.counts.of('team').assignments.tokens === 1)
  const other = open()
  other.report('edge', { bucket: BUCKET })
  await until('another one is served', () => other.actions.length > 0)
  clock.advance(30_000)
  other.report('edge', { bucket: BUCKET })
  await until('it is cut off', () => quotas.counts.cuts.unread === 1)
  assert.deepEqual([quotas.streams, other.status], [1, undefined])
  await proxy.stop()
  await settle(3)
})

test('a service that is about to stop ends the streams and takes in no others', async (t) => {
  const { quotas, service, open, settle } = await setUp(t)
  const client = open()
  client.report('edge', { bucket: BUCKET })
  await settle(1)
  service.drain()
  await client.ended()
  assert.deepEqual(client.status, { code: STATUS.unavailable, details: 'the server stops' })
  const late = open()
  late.report('edge', { bucket: BUCKET })
  await late.ended()
  assert.equal(late.status?.code, STATUS.unavailable)
  await until('no stream is left', () => quotas.streams === 0)
})

/** A stream of a client that does as it likes. */
async function rawStream(t: TestContext, url: string, initialWindowSize?: number) {
  const session = connect(url.replace(/^grpc/, 'http'), { settings: initialWindowSize === undefined ? {} : { initialWindowSize } })
  session.on('error', () => {})
  t.after(() => session.destroy())
  await once(session, 'connect')
  const stream = session.request({
    ':method': 'POST',
    ':path': '/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas',
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  stream.on('error', () => {})
  return stream
}

async function statusOf(stream: Awaited<ReturnType<typeof rawStream>>): Promise<number> {
  stream.resume()
  const [trailers] = (await once(stream, 'trailers')) as [Record<string, string>]
  return Number(trailers['grpc-status'])
}
