import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fromBinary } from '@bufbuild/protobuf'
import { manualClock } from 'sluicegate'
import { readConfig } from 'sluicegate-config/read-config.js'
import { until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { QuotaClient } from 'sluicegate-testkit/service/quota-client.js'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { createLog } from '../../log.js'
import { startService } from '../../service.js'
import { RateLimitQuotaResponseSchema } from './messages/envoy/service/rate_limit_quota/v3/rlqs.gen.js'

const LISTEN = 'listen: { port: 0, grpc: "127.0.0.1:0", admin: "127.0.0.1:0" }\n'
const BUCKET = { name: 'team', tenant: 'acme' }

async function setUp(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'quotas-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'gate.yaml')
  const write = (limit: number): void =>
    writeFileSync(file, `${LISTEN}policies: { team: { algorithm: token-bucket, limit: ${limit}, window: 1s, burst: 50 } }\n`)
  write(100)
  const clock = manualClock(0)
  const source = { path: file, read: () => readConfig(file) }
  const service = await startService(source.read(), { clock, source, log: createLog('silent'), watchMs: 3_600_000 })
  t.after(() => service.stop({ drainMs: 0, finishMs: 1_000 }))
  const url = service.urls.get('grpc') ?? assert.fail()
  const metric = async (name: string, labels?: Record<string, string>): Promise<number> =>
    seriesValue(readExposition(await (await fetch(`${service.url}/metrics`)).text()), name, labels)
  // After the assignments of an earlier process.
  clock.advance(17_000)
  return { clock, service, url, write, metric }
}

test('the service assigns quotas by its policies, follows a reload, and measures both', async (t) => {
  const { clock, service, url, write, metric } = await setUp(t)
  using client = new GrpcTestClient(url)
  const plane = new QuotaClient(client)
  const assigned = (): Promise<number> => metric('sluicegate_quota_assigned_tokens_per_second', { policy: 'team' })
  const report = (): void => {
    clock.advance(1_000)
    plane.report('edge', { bucket: BUCKET, allowed: 30, denied: 300 })
  }
  plane.report('edge', { bucket: BUCKET, denied: 1 })
  await until('there is an assignment', () => plane.actions.length > 0)
  assert.deepEqual(plane.actions[0]?.bucket, BUCKET)
  assert.equal(plane.actions[0]?.assignment.kind, 'tokens')
  await until('it gets nearly all', async () => {
    report()
    return (await assigned()) > 90
  })
  write(20)
  assert.equal((await fetch(`${service.urls.get('admin')}/v1/reload`, { method: 'POST' })).status, 200)
  await until('it has less', async () => {
    report()
    return (await assigned()) <= 20
  })
  assert.ok((await metric('sluicegate_quota_reported_requests_total', { policy: 'team', outcome: 'denied' })) > 300)
  assert.ok((await metric('sluicegate_quota_assignments_total', { policy: 'team', kind: 'tokens' })) > 1)
  assert.equal(await metric('sluicegate_quota_streams'), 1)
  assert.equal(await metric('sluicegate_quota_buckets', { policy: 'team' }), 1)
})

/** A data plane in Python, whose library is that of gRPC in C. It sends one report and prints the bytes of the first response. */
const PYTHON = `
import sys, grpc, queue
def field(number, payload): return bytes([number * 8 + 2, len(payload)]) + payload
bucket = field(1, field(1, field(1, b'name') + field(2, b'team')))
report = field(1, b'edge') + field(2, field(1, bucket[2:]) + field(2, bytes([8, 1])) + bytes([24, 1]))
reports = queue.Queue()
reports.put(report)
with grpc.insecure_channel(sys.argv[1]) as channel:
    stream = channel.stream_stream('/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas')
    responses = stream(iter(reports.get, None), timeout=20)
    print(next(responses).hex(), flush=True)
    reports.put(None)
`

test('the client of gRPC in C, as Python has it, receives assignments', async (t) => {
  const { url } = await setUp(t)
  const python = spawn('/usr/bin/python3', ['-c', PYTHON, url.replace('grpc://', '')], { stdio: ['ignore', 'pipe', 'inherit'] })
  const chunks: Buffer[] = []
  python.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  await once(python, 'close')
  const bytes = Buffer.from(Buffer.concat(chunks).toString().trim(), 'hex')
  const [action] = fromBinary(RateLimitQuotaResponseSchema, bytes).bucketAction
  assert.deepEqual({ ...action?.bucketId?.bucket }, { name: 'team' })
  assert.ok(action?.bucketAction.case === 'quotaAssignmentAction')
  assert.equal(action.bucketAction.value.rateLimitStrategy?.strategy.case, 'tokenBucket')
})
