import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type IncomingHttpHeaders } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Metadata, type ServiceError } from '@grpc/grpc-js'
import { manualClock } from 'sluicegate'
import type { Config } from 'sluicegate-config/config.js'
import { parseConfig, readConfig } from 'sluicegate-config/read-config.js'
import { longTest } from 'sluicegate-testkit'
import { envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { startService } from '../../service.js'
import { RateLimitQuotaService } from './messages/envoy/service/rate_limit_quota/v3/rlqs.gen.js'
import { RateLimitService as Envoy } from './messages/envoy/service/ratelimit/v3/rls.gen.js'
import { Health } from './messages/grpc/health/v1/health.gen.js'
import { ServerReflection } from './messages/grpc/reflection/v1/reflection.gen.js'
import { RateLimitService as Kuadrant } from './messages/kuadrant/service/ratelimit/v1/kuadrantrls.gen.js'
import { Limiter } from './messages/sluicegate/v1/limiter.gen.js'
import { STATUS } from './status.js'

const POLICIES = `policies:
  tokens: { algorithm: token-bucket, limit: 100, window: 1m }
  calls: { algorithm: fixed-window, limit: 2, window: 1m }
  slots: { algorithm: concurrency, limit: 2, ttl: 30s }
`
const RULES = `domain: models
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 100 } }
  - { key: weighed, rate_limit: { unit: minute, requests_per_unit: 100, cost: 10 } }
`

async function setUp(t: TestContext, more: Partial<Config> = {}) {
  const clock = manualClock(12_000)
  const config = parseConfig(POLICIES)
  const listen = { http: { host: '127.0.0.1', port: 0 }, grpc: { host: '127.0.0.1', port: 0 }, resp: undefined, admin: undefined }
  const service = await startService({ ...config, listen, domains: envoyDomains(RULES), ...more }, { clock })
  t.after(() => service.stop())
  const url = service.urls.get('grpc') ?? assert.fail()
  const client = new GrpcTestClient(url)
  t.after(() => client[Symbol.dispose]())
  return { service, clock, url, client }
}

function descriptors(key: string, value: string) {
  return [{ entries: [{ key, value }] }]
}

function bearer(token: string): { metadata: Metadata } {
  const metadata = new Metadata()
  metadata.set('authorization', `Bearer ${token}`)
  return { metadata }
}

test('a reservation holds what it declares until the work is done, and then costs what the work took', async (t) => {
  const { client } = await setUp(t)
  const of = { domain: 'models', descriptors: descriptors('user', 'alice') }
  const left = async (): Promise<number | undefined> => (await client.call(Kuadrant.method.checkRateLimit, of)).statuses[0]?.limitRemaining
  const first = await client.call(Kuadrant.method.reserve, { ...of, amount: 60n, ttl: { seconds: 30n } })
  assert.deepEqual([first.code, await left()], [1, 40])
  const second = await client.call(Kuadrant.method.reserve, { ...of, amount: 60n })
  assert.deepEqual([second.code, second.reservationId, await left()], [2, '', 40])
  await client.call(Kuadrant.method.commit, { ...of, reservationId: first.reservationId, actualAmount: 25n })
  assert.equal(await left(), 75)
  const again = client.call(Kuadrant.method.commit, { ...of, reservationId: first.reservationId, actualAmount: 25n })
  await assert.rejects(again, { code: STATUS.notFound })
  assert.equal(await left(), 75)
  const third = await client.call(Kuadrant.method.reserve, { ...of, amount: 75n })
  await client.call(Kuadrant.method.commit, { ...of, reservationId: third.reservationId, actualAmount: 90n })
  assert.equal((await client.call(Kuadrant.method.checkRateLimit, of)).overallCode, 2, 'more than declared is charged as well')
})

test('a reservation that is not committed in its time has cost nothing', async (t) => {
  const { client, clock, service } = await setUp(t)
  const of = { domain: 'models', descriptors: descriptors('user', 'alice') }
  const { reservationId } = await client.call(Kuadrant.method.reserve, { ...of, amount: 60n, ttl: { seconds: 5n } })
  clock.advance(6_000)
  service.engine.sweep()
  await assert.rejects(client.call(Kuadrant.method.commit, { ...of, reservationId, actualAmount: 1n }), { code: STATUS.notFound })
  assert.equal((await client.call(Kuadrant.method.checkRateLimit, of)).statuses[0]?.limitRemaining, 100)
})

test('a report charges what was used whether it is left or not, as a commit without reservation does', async (t) => {
  const { client } = await setUp(t)
  const of = { domain: 'models', descriptors: descriptors('user', 'alice') }
  assert.equal((await client.call(Kuadrant.method.report, { ...of, hitsAddend: 99 })).overallCode, 1)
  assert.equal((await client.call(Kuadrant.method.checkRateLimit, of)).overallCode, 1)
  await client.call(Kuadrant.method.commit, { ...of, actualAmount: 50n })
  assert.equal((await client.call(Kuadrant.method.checkRateLimit, of)).overallCode, 2)
})

test('the cost of a rule counts in reservations as well', async (t) => {
  const { client } = await setUp(t)
  const of = { domain: 'models', descriptors: descriptors('weighed', 'alice') }
  const { reservationId } = await client.call(Kuadrant.method.reserve, { ...of, amount: 8n })
  const left = async () => (await client.call(Kuadrant.method.checkRateLimit, of)).statuses[0]?.limitRemaining
  assert.equal(await left(), 2)
  await client.call(Kuadrant.method.commit, { ...of, reservationId, actualAmount: 3n })
  assert.equal(await left(), 7)
})

test('named policies are taken from, looked at and reserved, alone or together', async (t) => {
  const { client } = await setUp(t)
  const { take, peek, takeAll, reserve, commit } = Limiter.method
  const first = await client.call(take, { policy: 'tokens', keys: ['alice'], cost: 70n })
  assert.deepEqual([first.allowed, first.remaining, first.limit, first.policy, first.source], [true, 30n, 100n, 'tokens', 'memory'])
  const denied = await client.call(take, { policy: 'tokens', keys: ['alice'], cost: 31n })
  assert.deepEqual(
    [denied.allowed, denied.impossible, denied.retryAfter],
    [false, false, { ...denied.retryAfter, seconds: 0n, nanos: 600_000_000 }],
  )
  const never = await client.call(peek, { policy: 'tokens', keys: ['alice'], cost: 101n })
  assert.deepEqual([never.allowed, never.impossible, never.retryAfter], [false, true, undefined])
  const both = [
    { policy: 'tokens', keys: ['bob'], cost: 50n },
    { policy: 'calls', keys: ['bob'], cost: 3n },
  ]
  const none = await client.call(takeAll, { takes: both })
  assert.deepEqual([none.allowed, none.decisions.map(({ allowed }) => allowed)], [false, [true, false]])
  assert.equal((await client.call(peek, { policy: 'tokens', keys: ['bob'] })).remaining, 100n)
  const held = await client.call(reserve, { takes: both.slice(0, 1), ttl: { seconds: 10n } })
  const settled = await client.call(commit, { reservationId: held.reservationId, actualCost: 10n })
  assert.deepEqual([held.allowed, settled.found, settled.decisions[0]?.remaining], [true, true, 90n])
  assert.equal((await client.call(commit, { reservationId: held.reservationId, actualCost: 10n })).found, false)
})

test('mistakes of callers have their status', async (t) => {
  const { client } = await setUp(t)
  const { take, takeAll, reserve } = Limiter.method
  await assert.rejects(client.call(take, { policy: 'none', keys: ['a'] }), { code: STATUS.notFound })
  await assert.rejects(client.call(take, { policy: 'tokens', keys: [] }), { code: STATUS.invalidArgument })
  await assert.rejects(client.call(take, { policy: 'tokens', keys: [''] }), { code: STATUS.invalidArgument })
  assert.equal((await client.call(take, { policy: 'tokens', keys: ['a'], cost: 2n ** 60n })).impossible, true)
  await assert.rejects(client.call(take, { policy: 'slots', keys: ['a'] }), { code: STATUS.invalidArgument, details: /permits/ })
  await assert.rejects(client.call(takeAll, { takes: [] }), { code: STATUS.invalidArgument })
  const takes = [{ policy: 'tokens', keys: ['a'] }]
  await assert.rejects(client.call(reserve, { takes, ttl: { seconds: -1n } }), { code: STATUS.invalidArgument })
})

/** Bytes that are a message of no method: a length beyond the end, a group without end, field 0, a number without end, a part of a tag. */
const MALFORMED = ['0a7f01', '0b0801', '0001', '08ffffffffffffffffffff01', '80'].map((hex) => Buffer.from(hex, 'hex'))

test('malformed messages to every method end with INVALID_ARGUMENT, and the connection stays', async (t) => {
  const secret = 'admin-secret-01'
  const { client, url } = await setUp(t, { tokens: [{ name: 'ops', secret, scope: 'admin' }] })
  const { metadata } = bearer(secret)
  const methods = [Envoy, Kuadrant, Limiter, Health, ServerReflection, RateLimitQuotaService].flatMap((service) => service.methods)
  for (const { parent, name, methodKind, input } of methods) {
    // Its request is empty: nothing of it is read.
    if (input.fields.length === 0) continue
    for (const bytes of MALFORMED) {
      const path = `/${parent.typeName}/${name}`
      const same = (message: Buffer): Buffer => message
      const error = await new Promise<ServiceError | null>((resolve) => {
        if (methodKind === 'unary') {
          client.client.makeUnaryRequest(path, same, same, bytes, metadata, resolve)
          return
        }
        const stream = client.client.makeBidiStreamRequest(path, same, same, metadata)
        stream.on('error', resolve).on('data', () => undefined)
        stream.end(bytes)
      })
      assert.equal(error?.code, STATUS.invalidArgument, `${path} ${bytes.toString('hex')}: ${error?.details}`)
      assert.match(error.details, /^the request is no \S+.*: /)
    }
  }
  assert.equal((await client.call(Health.method.check, {})).status, 1)
  // Half a message, and none at all.
  const session = connect(url.replace('grpc:', 'http:'))
  t.after(() => session.destroy())
  for (const { parent, name, input } of methods) {
    if (input.fields.length === 0) continue
    const path = `/${parent.typeName}/${name}`
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', authorization: `Bearer ${secret}` }
    const stream = session.request(headers)
    const trailers = new Promise<IncomingHttpHeaders>((resolve) => {
      stream.on('response', (response) => 'grpc-status' in response && resolve(response)).on('trailers', resolve)
    })
    stream.resume().end(Buffer.from([0, 0, 0, 0, 9, 1]))
    assert.equal((await trailers)['grpc-status'], String(STATUS.invalidArgument), path)
  }
})

test('with tokens each call needs one, of scope admin for what changes keys of others; health needs none', async (t) => {
  const tokens = [
    { name: 'gateway', secret: 'decide-secret-1', scope: 'decide' },
    { name: 'ops', secret: 'admin-secret-01', scope: 'admin' },
  ] as const
  const { client } = await setUp(t, { tokens })
  const request = { policy: 'tokens', keys: ['alice'] }
  const { take, refund } = Limiter.method
  await assert.rejects(client.call(take, request), { code: STATUS.unauthenticated })
  await assert.rejects(client.call(take, request, bearer('wrong')), { code: STATUS.unauthenticated })
  assert.equal((await client.call(take, request, bearer('decide-secret-1'))).allowed, true)
  await assert.rejects(client.call(refund, request, bearer('decide-secret-1')), { code: STATUS.unauthenticated })
  assert.equal((await client.call(refund, request, bearer('admin-secret-01'))).remaining, 100n)
  assert.equal((await client.call(Health.method.check, {})).status, 1)
})

test('hits of descriptors are in the metrics, and their limits are policies', async (t) => {
  const { client, service } = await setUp(t)
  await client.call(Envoy.method.shouldRateLimit, { domain: 'models', descriptors: descriptors('user', 'alice'), hitsAddend: 3 })
  const metrics = await (await fetch(`${service.url}/metrics`)).text()
  assert.match(metrics, /^sluicegate_descriptor_hits_total\{descriptor="models\.user",outcome="allowed"\} 3$/m)
  assert.match(metrics, /^sluicegate_decisions_total\{policy="models\.user",outcome="allowed"\} 1$/m)
  assert.match(metrics, /^sluicegate_connections 2$/m)
})

test('rules change while clients call: what was spent stays, and a faulty file changes nothing', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'rules-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'rules.yaml')
  const write = (number: number | string, more = ''): void =>
    writeFileSync(
      file,
      `domain: models\ndescriptors:\n  - { key: user, rate_limit: { unit: minute, requests_per_unit: ${number} } }\n${more}`,
    )
  write(10)
  const source = { path: file, read: () => readConfig(file) }
  const listen = { http: undefined, grpc: { host: '127.0.0.1', port: 0 }, resp: undefined, admin: { host: '127.0.0.1', port: 0 } }
  const service = await startService(
    { ...source.read(), listen },
    { clock: manualClock(12_000), source: { ...source, read: () => ({ ...source.read(), listen }) }, watchMs: 3_600_000 },
  )
  t.after(() => service.stop())
  using client = new GrpcTestClient(service.urls.get('grpc') ?? assert.fail())
  const hit = async (key = 'user') =>
    (await client.call(Envoy.method.shouldRateLimit, { domain: 'models', descriptors: descriptors(key, 'alice') })).statuses[0]
  const reload = async (): Promise<number> => (await fetch(`${service.urls.get('admin')}/v1/reload`, { method: 'POST' })).status
  for (let i = 0; i < 4; i++) await hit()
  write(20, '  - { key: team, rate_limit: { unit: minute, requests_per_unit: 3 } }\n')
  assert.equal(await reload(), 200)
  assert.deepEqual([(await hit())?.limitRemaining, (await hit('team'))?.limitRemaining], [15, 2])
  write('many')
  assert.notEqual(await reload(), 200)
  assert.equal((await hit())?.limitRemaining, 14)
})

/** A client in Python, whose library is the one of gRPC in C. Messages are bytes: it needs no code of ours. */
const PYTHON = `
import sys, grpc
def field(number, payload): return bytes([number * 8 + 2, len(payload)]) + payload
entry = field(1, b'user') + field(2, sys.argv[2].encode())
message = field(1, b'models') + field(2, field(1, entry)) + bytes([24, 60])
with grpc.insecure_channel(sys.argv[1]) as channel:
    call = channel.unary_unary('/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit')
    print(' '.join(str(call(message, timeout=20)[1]) for _ in range(3)))
    try:
        call(b'', timeout=20)
    except grpc.RpcError as error:
        print(error.code().name, error.details())
    futures = [call.future(message, timeout=20) for _ in range(500)]
    print(sum(future.result()[1] == 2 for future in futures))
`

longTest('the client of gRPC in C, as Python has it, gets the same verdicts and errors', async (t) => {
  const { url } = await setUp(t)
  const python = spawn('/usr/bin/python3', ['-c', PYTHON, url.replace('grpc://', ''), 'alice'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const chunks: Buffer[] = []
  python.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(python, 'close')
  assert.deepEqual(Buffer.concat(chunks).toString().trim().split('\n'), ['1 2 2', 'UNKNOWN rate limit domain must not be empty', '500'])
})

test('work opens, adds and closes over gRPC, by counted calls and by price', async (t) => {
  const prices = { file: 'prices.yaml', table: { models: { small: { input: 1, output: 2 } } } }
  const { client, clock } = await setUp(t, { prices })
  const { open, add, close } = Limiter.method
  const key = { policy: 'tokens', keys: ['ada'] }
  const tokens = (value: bigint) => ({ cost: { case: 'tokens' as const, value } })
  const opened = await client.call(open, { ...key, expect: tokens(60n), ttl: { seconds: 30n } })
  assert.deepEqual([opened.decision?.allowed, opened.work?.held, opened.work?.affordable], [true, 60n, 100n])
  const { holdId } = opened
  const denied = await client.call(open, { ...key, expect: tokens(60n) })
  assert.deepEqual([denied.decision?.allowed, denied.decision?.policy, denied.holdId], [false, 'tokens', ''])
  const first = await client.call(add, {
    holdId,
    cost: { cost: { case: 'usage', value: { model: 'small', input: 4n, output: 3n } } },
    call: 1n,
  })
  assert.deepEqual([first.allowed, first.work?.used, first.work?.held], [true, 10n, 50n])
  assert.deepEqual(await client.call(add, { holdId, cost: tokens(10n), call: 1n }), first, 'a repeated call')
  const cut = await client.call(add, { holdId, cost: tokens(99n), call: 2n })
  assert.deepEqual([cut.allowed, cut.policy, cut.work?.used, (cut.retryAfter?.seconds ?? 0n) > 0n], [false, 'tokens', 10n, true])
  const closed = await client.call(close, { holdId, cost: tokens(25n), call: 3n })
  assert.deepEqual([closed.work?.used, closed.work?.over, closed.decision?.remaining], [25n, 0n, 75n])
  for (const [call, code] of [
    [client.call(add, { holdId, cost: tokens(1n) }), STATUS.failedPrecondition],
    [client.call(add, { holdId: 'none', cost: tokens(1n) }), STATUS.notFound],
    [client.call(close, { holdId: 'none' }), STATUS.notFound],
    [client.call(open, { ...key, ttl: { seconds: 3_601n } }), STATUS.invalidArgument],
    [client.call(open, { policy: 'tokens', namedKeys: { org: 'acme' } }), STATUS.invalidArgument],
    [client.call(open, { policy: 'none', keys: ['ada'] }), STATUS.notFound],
    [client.call(open, { policy: 'slots', keys: ['ada'] }), STATUS.invalidArgument],
    [client.call(add, { holdId, cost: tokens(2n ** 63n) }), STATUS.invalidArgument],
    [client.call(open, { ...key, expect: { cost: { case: 'usage', value: { model: 'none' } } } }), STATUS.invalidArgument],
  ] as const)
    await assert.rejects(call, { code })
  const { holdId: lapsing } = await client.call(open, { ...key, expect: tokens(75n) })
  clock.advance(40_000)
  await assert.rejects(client.call(close, { holdId: lapsing }), { code: STATUS.notFound })
})
