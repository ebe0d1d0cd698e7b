import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createClient } from '@redis/client'
import { until } from 'sluicegate-testkit'
import { announcement, type ServiceProcess, serveProcess, sluicegate } from '../testing/sluicegate-process.js'

const YAML = `listen: { port: 0 }
processes: 3
policies:
  wide: { algorithm: token-bucket, limit: 500, window: 30d }
  other: { algorithm: fixed-window, limit: 100000, window: year }
  jobs: { algorithm: concurrency, limit: 2, ttl: 60s }
`

interface Reply {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** One request over a connection of `agent`; by default a new one, which any worker may take. */
function send(url: string, path: string, agent: Agent | false = false, value?: unknown): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const method = value === undefined ? 'GET' : 'POST'
    const sent = request(
      `${url}${path}`,
      { agent: agent || new Agent(), method, headers: { 'content-type': 'application/json' } },
      (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : {} }))
        response.on('error', reject)
      },
    )
    sent.setTimeout(10_000, () => sent.destroy(new Error('no answer')))
    sent.on('error', reject)
    sent.end(value === undefined ? undefined : JSON.stringify(value))
  })
}

/** Statuses of `perConnection` requests of each of 64 connections; an error counts as 0. */
async function load(url: string, path: string, perConnection: number): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (let i = 0; i < perConnection; i++) {
        const { status } = await send(url, path, agent).catch(({ code }: NodeJS.ErrnoException) => ({
          status: code === 'ECONNREFUSED' ? -1 : 0,
        }))
        // The port is closed: the service did not take the request.
        if (status === -1) break
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
      agent.destroy()
    }),
  )
  return statuses
}

function workersOf({ child }: ServiceProcess): number[] {
  return execFileSync('ps', ['-o', 'pid=', '--ppid', String(child.pid)], { encoding: 'utf8' })
    .trim()
    .split(/\s+/)
    .map(Number)
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

test('64 connections over 3 workers receive one budget exactly, and the metrics show the whole', async (t) => {
  const service = await serveProcess(t, YAML)
  assert.equal(workersOf(service).length, 3)
  const statuses = await load(service.url, '/v1/take?policy=wide&key=alice', 20)
  assert.deepEqual(Object.fromEntries(statuses), { 200: 500, 429: 780 })
  assert.equal(await service.metric('sluicegate_decisions_total', { policy: 'wide', outcome: 'allowed' }), 500)
  assert.equal(await service.metric('sluicegate_decisions_total', { policy: 'wide', outcome: 'denied' }), 780)
  assert.equal(await service.metric('sluicegate_keys', { policy: 'wide' }), 1)
})

test('a worker that is killed half-way is replaced; the budget stays exact as seen by all clients together', async (t) => {
  const service = await serveProcess(t, YAML)
  const before = workersOf(service)
  const first = load(service.url, '/v1/take?policy=wide&key=alice', 20)
  process.kill(before[0] as number, 'SIGKILL')
  const statuses = await first
  const passed = statuses.get(200) ?? 0
  // An answer of the killed worker may be lost after its tokens were taken.
  assert.ok(passed <= 500 && passed + (statuses.get(0) ?? 0) >= 500, JSON.stringify([...statuses]))
  await until('a worker has taken its place', async () => workersOf(service).length === 3)
  assert.equal((await send(service.url, '/v1/take?policy=wide&key=alice')).status, 429)
})

test('permits and reservations work whichever worker a connection reaches', async (t) => {
  const service = await serveProcess(t, YAML)
  for (let round = 0; round < 6; round++) {
    const taken = await send(service.url, '/v1/take?policy=jobs&key=alice')
    const permit = taken.body.permit
    assert.equal(taken.status, 200)
    assert.equal((await send(service.url, '/v1/heartbeat', false, { permit })).status, 200)
    assert.equal((await send(service.url, '/v1/release', false, { permit })).status, 200)
    assert.equal((await send(service.url, '/v1/release', false, { permit })).status, 404)
    const { reservation } = (await send(service.url, '/v1/reserve', false, { policy: 'other', key: 'alice', cost: 100 })).body
    assert.equal((await send(service.url, '/v1/settle', false, { reservation, cost: 10 })).status, 200)
    assert.equal((await send(service.url, '/v1/settle', false, { reservation, cost: 10 })).status, 404)
  }
  assert.equal((await send(service.url, '/v1/peek?policy=other&key=alice')).body.remaining, 100_000 - 60)
})

test('a reload under load reaches all workers, and a faulty one none', async (t) => {
  const path = join(folder(t), 'limits.yaml')
  writeFileSync(path, YAML)
  const child = sluicegate(t, 'serve', '--config', path)
  const { url } = await announcement(child)
  const loading = load(url, '/v1/take?policy=other&key=bob', 40)
  writeFileSync(path, YAML.replace('limit: 500', 'limit: 600').concat('  fresh: { algorithm: gcra, limit: 5, window: 1h, burst: 5 }\n'))
  child.kill('SIGHUP')
  assert.deepEqual([...(await loading).keys()], [200])
  await until('the new policy is served', async () => (await send(url, '/v1/peek?policy=fresh&key=a')).status === 200)
  for (let i = 0; i < 6; i++) assert.equal((await send(url, '/v1/peek?policy=fresh&key=a')).status, 200)
  for (let i = 0; i < 6; i++) assert.equal((await send(url, '/v1/take?policy=fresh&key=a')).status, i < 5 ? 200 : 429)
  writeFileSync(path, 'policies: { fresh: { algorithm: none } }')
  child.kill('SIGHUP')
  const failed = async (): Promise<boolean> => /config_reload_failed 1/.test(await (await fetch(`${url}/metrics`)).text())
  await until('the fault is in the metrics', failed)
  for (let i = 0; i < 6; i++) assert.equal((await send(url, '/v1/peek?policy=wide&key=a')).body.limit, 600)
})

test('after SIGTERM under load each request is answered; the next start knows what was spent, also by CL.THROTTLE', async (t) => {
  const place = folder(t)
  const resp = join(place, 'resp.sock')
  const flags = ['--resp', `unix:${resp}`, '--snapshot', join(place, 'keys.snapshot'), '--drain', '1s']
  const throttle = async (): Promise<number> => {
    const client = createClient({ socket: { path: resp, tls: false }, RESP: 2 })
    await client.connect()
    const reply = (await client.sendCommand(['CL.THROTTLE', 'alice', '99', '1', '86400', '10'])) as unknown as number[]
    client.destroy()
    return reply[2] as number
  }
  const first = await serveProcess(t, YAML, ...flags)
  assert.deepEqual([await throttle(), await throttle(), await throttle()], [90, 80, 70])
  const loading = load(first.url, '/v1/take?policy=other&key=bob', 10)
  await send(first.url, '/v1/take?policy=wide&key=alice&cost=7')
  const code = first.end('SIGTERM')
  const answered = await loading
  assert.deepEqual([...answered.keys()], [200])
  assert.equal(await code, 0)
  assert.ok(!existsSync(resp))
  const second = await serveProcess(t, YAML, ...flags)
  assert.equal((await send(second.url, '/v1/peek?policy=wide&key=alice')).body.remaining, 493)
  assert.equal((await send(second.url, '/v1/peek?policy=other&key=bob')).body.remaining, 100_000 - (answered.get(200) ?? 0))
  assert.equal(await throttle(), 60)
})
