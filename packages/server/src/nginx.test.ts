import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readRateLimitFields, readRateLimitLists } from 'sluicegate-testkit/service/rate-limit-fields.js'
import { atOnce, runNginx, runService } from 'sluicegate-testkit/service/running-service.js'
import type { Service } from './service.js'

const SHIPPED = readFileSync(fileURLToPath(new URL('../../../examples/nginx/sluicegate.conf', import.meta.url)), 'utf8')
const CONFIG = 'listen: { port: 0 }\npolicies:\n  per-user: { algorithm: token-bucket, limit: 3, window: 1h, burst: 3 }\n'

interface Edge {
  readonly url: string
  readonly service: Service
  /** How many requests nginx let through. */
  passed(): number
  /** How many bytes of bodies came with them. */
  received(): number
  /** The error log of nginx, for a test that fails. */
  log(): string
}

/** nginx with the configuration that ships, between us, the service and an application; only addresses and time limits are put in. */
async function runEdge(t: TestContext, change: (conf: string) => string = (conf) => conf, config: string = CONFIG): Promise<Edge> {
  const service = await runService(t, config)
  let passed = 0
  let received = 0
  const application = createServer(async (request, response) => {
    passed++
    // Read in full: an answer before the end of the body may disconnect the sender.
    for await (const chunk of request) received += chunk.length
    response.writeHead(request.url === '/forbidden' ? 403 : 200).end('from the application')
  })
  application.listen(0, '127.0.0.1')
  await once(application, 'listening')
  t.after(() => application.close())
  const values = {
    '127.0.0.1:8080': new URL(service.url).host,
    '127.0.0.1:3000': `127.0.0.1:${(application.address() as AddressInfo).port}`,
  }
  const { url, log } = await runNginx(t, change(SHIPPED), values, ['/_sluicegate', (status) => status === 404])
  return { url, service, passed: () => passed, received: () => received, log }
}

test('nginx lets through what the policy admits, and answers 429 with Retry-After to the rest', async (t) => {
  const { url, passed } = await runEdge(t)
  const allowed = await fetch(url)
  assert.deepEqual([allowed.status, await allowed.text()], [200, 'from the application'])
  assert.deepEqual(readRateLimitFields(allowed.headers), { name: 'per-user', q: 3, w: 3600, r: 2, t: 2400 })
  assert.equal(allowed.headers.has('retry-after'), false)

  const answers = await Promise.all(Array.from({ length: 20 }, () => fetch(url)))
  const denied = answers.filter(({ status }) => status === 429)
  assert.equal(denied.length, 18)
  assert.equal(passed(), 3)
  for (const { headers } of denied) {
    const seconds = Number(headers.get('retry-after'))
    assert.ok(seconds > 0 && seconds <= 1200, `Retry-After: ${seconds}`)
    assert.ok(readRateLimitFields(headers).t <= seconds)
    assert.equal(headers.get('cache-control'), 'no-store')
  }
  const body = (await denied[0]?.json()) as { status: number }
  assert.equal(body.status, 429)
})

test('of several policies at once nginx passes all items on', async (t) => {
  const parts = '[{ algorithm: sliding-log, limit: 2, window: 1h }, { algorithm: fixed-window, limit: 9, window: day, name: quota }]'
  const { url } = await runEdge(t, undefined, `listen: { port: 0 }\npolicies:\n  per-user: { all-of: ${parts} }\n`)
  const answers = [await fetch(url), await fetch(url), await fetch(url)]
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 200, 429],
  )
  for (const { headers } of answers) {
    const names = readRateLimitLists(headers).map(({ name }) => name)
    assert.deepEqual(names, ['sliding-log-2-1h', 'quota'])
  }
})

test('a post with a body is limited too, and arrives whole', async (t) => {
  const { url, passed, received, log } = await runEdge(t)
  const statuses: number[] = []
  for (let i = 0; i < 5; i++) statuses.push((await fetch(url, { method: 'POST', body: 'x'.repeat(100_000) })).status)
  assert.deepEqual(statuses, [200, 200, 200, 429, 429], log())
  assert.deepEqual([passed(), received()], [3, 300_000])
})

test('a post as large as its location allows passes, whatever limit other locations have', async (t) => {
  const { url, received, log } = await runEdge(t, (conf) => conf.replace('auth_request /_sluicegate;', '$& client_max_body_size 10m;'))
  const { status } = await fetch(url, { method: 'POST', body: 'x'.repeat(3_000_000) })
  assert.deepEqual([status, received()], [200, 3_000_000], log())
})

test('200 addresses of one /64 are one client', async (t) => {
  const realIp = 'set_real_ip_from 127.0.0.1; real_ip_header x-proxied-for;'
  const { url, service, passed } = await runEdge(t, (conf) => conf.replace('listen 127.0.0.1:8000;', `$& ${realIp}`))
  const from = async (address: string) => (await fetch(url, { headers: { 'x-proxied-for': address } })).status
  const statuses = await Promise.all(Array.from({ length: 200 }, (_, i) => from(`2001:db8:0:4217::${i.toString(16)}`)))
  assert.deepEqual([statuses.filter((status) => status === 200).length, passed()], [3, 3])
  assert.equal(atOnce(service.engine.policy('per-user')?.peek('2001:db8:0:4200::/56', 1)).allowed, false)
  assert.equal(await from('2001:db8:0:4300::1'), 200)
})

test('a request without a key receives 401 of the service, and no 500', async (t) => {
  const { url, passed } = await runEdge(t, (conf) => conf.replace('X-Sluicegate-Key $remote_addr', 'X-Sluicegate-Key $http_x_api_key'))
  const response = await fetch(url)
  assert.deepEqual([response.status, response.headers.get('www-authenticate'), passed()], [401, 'ApiKey', 0])
  assert.equal((await fetch(url, { headers: { 'x-api-key': 'a' } })).status, 200)
})

test('a forgotten Content-Length does not make one request the body of another', async (t) => {
  const { url, log } = await runEdge(t, (conf) => conf.replace('proxy_set_header Content-Length "";', ''))
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) statuses.push((await fetch(url, { method: 'POST', body: 'x'.repeat(1_000) })).status)
  assert.deepEqual(statuses, [200, 200, 200], log())
})

test('a client can name neither policy nor key nor cost', async (t) => {
  const { url, service } = await runEdge(t)
  const headers = { 'x-sluicegate-key': 'another-key', 'x-sluicegate-policy': 'other', 'x-sluicegate-cost': '99' }
  assert.equal((await fetch(`${url}/?policy=other&key=x&cost=99`, { headers })).status, 200)
  assert.equal(atOnce(service.engine.policy('per-user')?.peek('127.0.0.1', 1)).remaining, 2)
})

test('a 403 of the application stays a 403', async (t) => {
  const { url } = await runEdge(t)
  assert.equal((await fetch(`${url}/forbidden`)).status, 403)
})

test('the subrequest location is not reachable from outside', async (t) => {
  const { url } = await runEdge(t)
  assert.equal((await fetch(`${url}/_sluicegate`)).status, 404)
})

test('without Sluicegate nothing passes, unless the file says otherwise', async (t) => {
  const closed = await runEdge(t)
  await closed.service.stop()
  assert.equal((await fetch(closed.url)).status, 500)
  const open = await runEdge(t, (conf) => conf.replaceAll(/#(proxy_intercept_errors|error_page)/g, '$1'))
  await open.service.stop()
  assert.deepEqual([(await fetch(open.url)).status, open.passed()], [200, 1])
})
