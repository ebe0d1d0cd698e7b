import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import { after, afterEach, before, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Metadata } from '@grpc/grpc-js'
import { context, trace } from '@opentelemetry/api'
import { readConfig } from 'sluicegate-config/read-config.js'
import { longTest } from 'sluicegate-testkit'
import { readExposition } from 'sluicegate-testkit/service/exposition.js'
import { type EndedSpan, MemoryTelemetry } from 'sluicegate-testkit/service/memory-telemetry.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { announcement, configFile, MAIN } from 'sluicegate-testkit/service/sluicegate-process.js'
import { RateLimitService } from '../protocols/grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'
import { type Service, startService } from '../service.js'
import { instrumentName } from './meter-report.js'
import { telemetryOf } from './telemetry.js'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const PARENT_ID = '00f067aa0ba902b7'
const TRACEPARENT = `00-${TRACE_ID}-${PARENT_ID}-01`
const CONFIG = `
listen: { http: '127.0.0.1:0', grpc: '127.0.0.1:0', resp: '127.0.0.1:0' }
policies:
  two: { algorithm: token-bucket, limit: 2, window: 1h }
  other: { algorithm: token-bucket, limit: 100, window: 1h }
`

const telemetry = new MemoryTelemetry()

before(() => telemetry.register())
afterEach(() => {
  telemetry.spans.length = 0
  telemetry.isSampling = true
})
after(() => telemetry.unregister())

function post(service: Service, path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const json = { 'Content-Type': 'application/json', ...headers }
  return fetch(`${service.url}${path}`, { method: 'POST', headers: json, body: JSON.stringify(body) })
}

test('an HTTP request is a span of the caller’s trace, with policy, outcome and source', async (t) => {
  const service = await runService(t, CONFIG)
  const response = await post(service, '/v1/take', { policy: 'two', key: 'alice' }, { traceparent: TRACEPARENT })
  assert.equal(response.status, 200)
  const [span, ...more] = telemetry.spans
  assert.equal(more.length, 0)
  assert.deepEqual(
    { ...span, spanId: undefined },
    {
      name: 'POST /v1/take',
      kind: 'SERVER',
      traceId: TRACE_ID,
      spanId: undefined,
      parentId: PARENT_ID,
      status: undefined,
      attributes: {
        'http.request.method': 'POST',
        'http.route': '/v1/take',
        'http.response.status_code': 200,
        'sluicegate.policy': 'two',
        'sluicegate.outcome': 'allowed',
        'sluicegate.source': 'memory',
      },
    },
  )
})

test('a denial, a mistake of the caller and an outage are three different spans, and no span has a key', async (t) => {
  const service = await runService(t, CONFIG)
  const take = (query: string) => fetch(`${service.url}/v1/take?${query}`)
  await take('policy=two&key=secret&cost=2')
  await take('policy=two&key=secret')
  await take('policy=two&key=secret&cost=3')
  await take('policy=none&key=secret')
  service.engine.policy('two')?.close()
  await take('policy=two&key=secret')
  assert.deepEqual(
    telemetry.spans.map(({ attributes, status }) => [attributes['sluicegate.outcome'], attributes['error.type'], status?.message]),
    [
      ['allowed', undefined, undefined],
      ['denied', undefined, undefined],
      ['impossible', undefined, undefined],
      [undefined, 'POLICY_UNKNOWN', undefined],
      ['outage', 'CLOSED', 'CLOSED'],
    ],
  )
  assert.ok(!JSON.stringify(telemetry.spans).includes('secret'))
})

test('several decisions of one request are one span, which names the policy that denied', async (t) => {
  const service = await runService(t, CONFIG)
  const takes = [
    { policy: 'other', key: 'a' },
    { policy: 'two', key: 'a', cost: 3 },
  ]
  await post(service, '/v1/batch', { takes })
  const [{ attributes } = assert.fail()] = telemetry.spans
  assert.deepEqual(
    [attributes['sluicegate.policy'], attributes['sluicegate.outcome'], attributes['sluicegate.decisions']],
    ['two', 'impossible', 2],
  )
})

test('probes, metrics and refused requests are no spans', async (t) => {
  const service = await runService(t, `${CONFIG}tokens: [{ name: a, scope: decide, secret: 0123456789abcdef }]\n`)
  for (const path of ['/livez', '/metrics', '/openapi.json', '/v1/take?policy=two&key=a']) await fetch(service.url + path)
  assert.deepEqual(telemetry.spans, [])
})

test('a request that is not sampled is answered, and is part of the trace of what it calls', async (t) => {
  const service = await runService(t, CONFIG)
  telemetry.isSampling = false
  assert.equal((await post(service, '/v1/take', { policy: 'two', key: 'a' })).status, 200)
  assert.deepEqual(telemetry.spans, [])
})

test('a gRPC call is a span of the trace in its metadata, with the verdict over all descriptors', async (t) => {
  const rules = `domain: edge
descriptors:
  - { key: model, value: a, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 1 } }
  - { key: model, value: b, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 9 } }
`
  const service = await runDomain(t, rules)
  using client = new GrpcTestClient(service.urls.get('grpc') ?? '')
  const metadata = new Metadata()
  metadata.set('traceparent', TRACEPARENT)
  const descriptors = ['a', 'b'].map((value) => ({ entries: [{ key: 'model', value }] }))
  for (let i = 0; i < 2; i++) await client.call(RateLimitService.method.shouldRateLimit, { domain: 'edge', descriptors }, { metadata })
  const spans = telemetry.spans.map(({ name, kind, traceId, parentId, attributes }) => ({ name, kind, traceId, parentId, attributes }))
  const span = (policy: string) => ({
    name: 'envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
    kind: 'SERVER',
    traceId: TRACE_ID,
    parentId: PARENT_ID,
    attributes: {
      'rpc.system': 'grpc',
      'rpc.service': 'envoy.service.ratelimit.v3.RateLimitService',
      'rpc.method': 'ShouldRateLimit',
      'sluicegate.policy': policy,
      'sluicegate.outcome': 'allowed',
      'sluicegate.source': 'memory',
      'sluicegate.decisions': 2,
    },
  })
  assert.deepEqual(spans, [span('edge.model_a'), span('edge.model_a')])
})

test('commands on keys are spans, others are none', async (t) => {
  const service = await runService(t, CONFIG)
  const socket = connect(Number(service.urls.get('resp')?.split(':').at(-1)), '127.0.0.1')
  t.after(() => socket.destroy())
  let replies = ''
  const done = new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      replies += chunk
      if (replies.includes('+PONG')) resolve()
    })
  })
  socket.write('CL.THROTTLE k 0 1 60\r\nCL.THROTTLE k 0 1 60\r\nSG.TAKE two k 1\r\nPING\r\n')
  await done
  assert.deepEqual(
    telemetry.spans.map(({ name, parentId, attributes }) => [
      name,
      parentId,
      attributes['sluicegate.policy'],
      attributes['sluicegate.outcome'],
    ]),
    [
      ['CL.THROTTLE', undefined, undefined, 'allowed'],
      ['CL.THROTTLE', undefined, undefined, 'denied'],
      ['SG.TAKE', undefined, 'two', 'allowed'],
    ],
  )
})

test('within a span of the program’s own instrumentation a call is its child, whatever its headers say', async () => {
  const { tracing = assert.fail() } = await telemetryOf('1.2.3')
  const outer = trace.getTracer('http').startSpan('outer')
  const call = { name: 'call', headers: { traceparent: TRACEPARENT }, attributes: {} }
  const inner = context.with(trace.setSpan(context.active(), outer), () => tracing.run(call, () => trace.getActiveSpan()))
  const [span] = telemetry.spans
  assert.deepEqual([span?.kind, span?.parentId, span?.traceId], ['INTERNAL', outer.spanContext().spanId, outer.spanContext().traceId])
  assert.ok(!(inner instanceof Promise) && inner?.spanContext().spanId === span?.spanId, 'calls to a store are its children')
})

test('the instruments say what the exposition says', async (t) => {
  const service = await runService(t, CONFIG)
  for (let i = 0; i < 3; i++) await post(service, '/v1/take', { policy: 'two', key: 'a' })
  const exposed = readExposition(await (await fetch(`${service.url}/metrics`)).text()).filter(({ name }) => name.startsWith('sluicegate_'))
  const observed = telemetry.collect()
  const key = (name: string, labels: object): string =>
    `${name.replace(/\.(?=bucket|sum|count)/, '_').replace('.', '_')} ${JSON.stringify(Object.entries(labels).map(([label, value]) => [label, String(value)]))}`
  const asExposed = (name: string): string => {
    const histogram = /^(.*)_seconds_(bucket|sum|count)$/.exec(name)
    return histogram === null ? instrumentName(name).name : `${instrumentName(`${histogram[1]}_seconds`).name}_${histogram[2]}`
  }
  const values = new Map(observed.map(({ name, attributes, value }) => [key(name, attributes), value]))
  assert.equal(values.size, observed.length)
  assert.equal(values.size, exposed.length)
  for (const { name, labels, value } of exposed) {
    if (/in_flight|connections$/.test(name)) continue
    assert.equal(values.get(key(asExposed(name), labels)), value, `${name} ${JSON.stringify(labels)}`)
  }
  const duration = observed.find(({ name }) => name === 'sluicegate.decision_duration.sum')
  assert.deepEqual([duration?.unit, duration?.kind], ['s', 'counter'])
  const { flushes } = telemetry
  await service.stop()
  assert.equal(telemetry.flushes, flushes + 2, 'both providers have sent what they held')
  assert.deepEqual(telemetry.collect(), [], 'a service that has stopped reports nothing')
})

test('names are in the form of OpenTelemetry, the unit apart', () => {
  assert.deepEqual(instrumentName('sluicegate_decisions_total'), { name: 'sluicegate.decisions', unit: '' })
  assert.deepEqual(instrumentName('sluicegate_memory_bytes'), { name: 'sluicegate.memory', unit: 'By' })
})

test('a program whose providers are registered by --import is followed', async (t) => {
  const { url, span: ended } = await serveWith(t, 'telemetry-preload.js')
  assert.equal((await fetch(`${url}/v1/take?policy=two&key=a`, { headers: { traceparent: TRACEPARENT } })).status, 200)
  const { name, traceId, attributes } = await ended
  assert.deepEqual([name, traceId, attributes['sluicegate.outcome']], ['GET /v1/take', TRACE_ID, 'allowed'])
})

longTest('a program with providers, in which the service does not find the API of OpenTelemetry, serves as any other', async (t) => {
  const { url } = await serveWith(t, 'without-telemetry-api.js')
  assert.equal((await fetch(`${url}/v1/take?policy=two&key=a`)).status, 200)
})

test('without providers no call is followed', async () => {
  telemetry.unregister()
  assert.equal((await telemetryOf('1.2.3')).tracing, undefined)
})

async function runDomain(t: TestContext, rules: string): Promise<Service> {
  const config = readConfig(configFile(t, rules))
  const free = { host: '127.0.0.1', port: 0 }
  const service = await startService({ ...config, listen: { ...config.listen, http: free, grpc: free } })
  t.after(() => service.stop({ drainMs: 0, finishMs: 0 }))
  return service
}

/** The command line in a process that imports a file of the testkit first. */
async function serveWith(t: TestContext, preload: string): Promise<{ url: string; span: Promise<EndedSpan> }> {
  const preloaded = fileURLToPath(import.meta.resolve(`sluicegate-testkit/service/${preload}`))
  const args = ['--import', preloaded, MAIN, 'serve', '--config', configFile(t, CONFIG)]
  const child = spawn(process.execPath, args)
  t.after(() => child.kill('SIGKILL'))
  const span = new Promise<EndedSpan>((resolve) => {
    createInterface({ input: child.stderr }).on('line', (line) => {
      if (line.startsWith('{"span"')) resolve((JSON.parse(line) as { span: EndedSpan }).span)
    })
  })
  const { url } = await announcement(child)
  return { url, span }
}
