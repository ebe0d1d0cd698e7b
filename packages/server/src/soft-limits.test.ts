import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { manualClock } from 'sluicegate'
import { parseConfig, readConfig } from 'sluicegate-config/read-config.js'
import { RedisProcess, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { runNode, runService } from 'sluicegate-testkit/service/running-service.js'
import { serveProcess } from 'sluicegate-testkit/service/sluicegate-process.js'
import type { SoftLimitReached } from './engine/engine.js'
import { createLog } from './log.js'
import { canSharePorts } from './processes/child.js'
import { RateLimitService as Envoy } from './protocols/grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'
import { Limiter } from './protocols/grpc/messages/sluicegate/v1/limiter.gen.js'
import { Webhook } from './webhook.js'

const SECRET = 'a secret of many letters'
const POLICIES = `
listen: { port: 0 }
policies:
  team: { algorithm: fixed-window, limit: 10, window: year, soft: ['80%', '100%'] }
  api:
    soft: ['50%']
    levels:
      org: { algorithm: fixed-window, limit: 100, window: year }
      user: { algorithm: fixed-window, limit: 10, window: year, soft: ['90%'] }
`
const REACHED: SoftLimitReached = { policy: 'team', part: undefined, key: 'ada', threshold: '80%', used: 8, limit: 10 }
const NOW = { drainMs: 0, finishMs: 0 }

interface Post {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

type Shown = Readonly<Record<string, unknown>>

/** @param answer the status for the n-th request, from 1; undefined: none, or 200 once it is called `later`. */
async function receiver(
  t: TestContext,
  answer: (n: number) => number | undefined,
  later: (respond: () => void) => void = () => undefined,
): Promise<{ url: string; posts: Post[]; shown(): Shown[] }> {
  const posts: Post[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    posts.push({ headers: request.headers, body })
    const status = answer(posts.length)
    if (status === undefined) later(() => response.end())
    else response.writeHead(status, status < 400 ? {} : { location: '/elsewhere' }).end('x')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  return { url, posts, shown: () => posts.map(({ body }) => JSON.parse(body).data as Shown) }
}

async function post(at: { readonly url: string }, path: string, value: object) {
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(value) }
  const response = await fetch(`${at.url}/v1/${path}`, init)
  return { status: response.status, soft: response.headers.get('ratelimit-soft'), body: (await response.json()) as Record<string, unknown> }
}

async function metricOf(at: { readonly url: string }, name: string, labels?: Record<string, string>): Promise<number> {
  return seriesValue(readExposition(await (await fetch(`${at.url}/metrics`)).text()), name, labels)
}

function webhook(url: string, more: { readonly retries?: number; readonly timeoutMs?: number; readonly secret?: string } = {}): Webhook {
  return new Webhook({ url, secret: undefined, timeoutMs: 5_000, retries: 3, ...more }, createLog('silent'), 1)
}

test('each threshold is announced once, by takes, batches, holds and reservations; answers name the policies', async (t) => {
  const { url, posts, shown } = await receiver(t, () => 200)
  const service = await runService(t, `${POLICIES}webhook: { url: "${url}", secret: ${SECRET} }\n`, { clock: manualClock(0) })
  assert.deepEqual((await post(service, 'take', { policy: 'team', key: 'ada', cost: 7 })).body.soft, undefined)
  const taken = await post(service, 'take', { policy: 'team', key: 'ada' })
  assert.deepEqual([taken.status, taken.body.soft, taken.soft], [200, ['team'], '"team"'])
  const batch = {
    all: true,
    takes: [
      { policy: 'team', key: 'ada', cost: 1 },
      { policy: 'team', key: 'bea', cost: 8 },
    ],
  }
  const decisions = (await post(service, 'batch', batch)).body.decisions as { soft?: string[] }[]
  assert.deepEqual(
    decisions.map(({ soft }) => soft),
    [['team'], ['team']],
  )
  assert.equal((await post(service, 'take', { policy: 'team', key: 'ada', cost: 5 })).status, 429)
  const opened = await post(service, 'open', { policy: 'team', key: 'cleo', expect: 5 })
  assert.deepEqual([opened.status, opened.body.soft], [200, undefined])
  const closed = await post(service, 'close', { hold: opened.body.hold, cost: 10 })
  assert.deepEqual(closed.body.soft, ['team'])
  const large = await post(service, 'open', { policy: 'team', key: 'eli', expect: 8 })
  assert.deepEqual([large.status, large.body.soft], [200, ['team']], 'what is held counts')
  const reserved = await post(service, 'reserve', { policy: 'team', key: 'dan', cost: 2 })
  assert.deepEqual((await post(service, 'settle', { reservation: reserved.body.reservation, cost: 8 })).body.soft, ['team'])
  const level = await post(service, 'take', { policy: 'api', key: { org: 'acme', user: 'ada' }, cost: 9 })
  assert.deepEqual([level.body.soft, level.soft], [['user'], '"user"'])
  assert.deepEqual((await post(service, 'peek', { policy: 'team', key: 'ada' })).body.soft, ['team'])

  const expected = ['ada 80%', 'bea 80%', 'cleo 80%', 'cleo 100%', 'eli 80%', 'dan 80%', 'ada 90%']
  await until('all are announced', () => Promise.resolve(posts.length >= expected.length))
  assert.deepEqual(
    shown()
      .map(({ key, threshold }) => `${key} ${threshold}`)
      .sort(),
    expected.sort(),
  )
  assert.deepEqual(
    shown().find(({ part }) => part === 'user'),
    { policy: 'api', part: 'user', key: 'ada', threshold: '90%', used: 9, limit: 10 },
  )
  for (const { headers, body } of posts) {
    const [id, at] = [headers['webhook-id'], headers['webhook-timestamp']]
    assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', SECRET).update(`${id}.${at}.${body}`).digest('base64')}`)
  }
  assert.equal(await metricOf(service, 'sluicegate_soft_limits_total', { policy: 'team', threshold: '80%' }), 5)
  assert.equal(await metricOf(service, 'sluicegate_soft_limits_total', { policy: 'api', part: 'user', threshold: '90%' }), 1)
  await until(
    'all are delivered',
    async () => (await metricOf(service, 'sluicegate_webhook_announcements_total', { result: 'delivered' })) === 7,
  )
})

test('a reload changes thresholds, and announces nothing again', async (t) => {
  const { url, posts, shown } = await receiver(t, () => 200)
  const yaml = (soft: string): string => `${POLICIES.replace("'80%', '100%'", soft)}webhook: { url: "${url}" }\n`
  let text = yaml("'80%'")
  const source = { path: '.', read: () => parseConfig(text) }
  const service = await runService(t, text, { clock: manualClock(0), source, watchMs: 3_600_000, log: createLog('silent') })
  const take = async (key: string, cost: number) => (await post(service, 'take', { policy: 'team', key, cost })).body.soft
  assert.deepEqual(await take('ada', 8), ['team'])
  text = yaml("'50%', '80%'")
  await service.reloader?.reload('admin')
  assert.deepEqual(await take('ada', 1), ['team'])
  assert.deepEqual(await take('bea', 5), ['team'])
  text = yaml("'90%'")
  await service.reloader?.reload('admin')
  assert.equal(await take('bea', 1), undefined)
  await until('all are announced', () => Promise.resolve(posts.length >= 3))
  await service.stop({ drainMs: 0, finishMs: 5_000 })
  assert.deepEqual(
    shown()
      .map(({ key, threshold }) => `${key} ${threshold}`)
      .sort(),
    ['ada 50%', 'ada 80%', 'bea 50%'],
  )
})

test('two processes over one Redis, and two workers of one service, announce once', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  for (const [more, processes] of [
    [`storage: { redis: { url: "${redis.url}", timeout: 10s } }\n`, 2],
    ['processes: 2\n', 1],
    ...(canSharePorts() ? ([['threads: 2\n', 1]] as const) : []),
  ] as const) {
    const { url, shown } = await receiver(t, () => 200)
    const yaml = `${POLICIES}${more}webhook: { url: "${url}" }\n`
    const nodes = await Promise.all(Array.from({ length: processes }, () => serveProcess(t, yaml)))
    const at = (i: number) => nodes[i % processes] as { readonly url: string }
    const takes = await Promise.all(Array.from({ length: 40 }, (_, i) => post(at(i), 'take', { policy: 'team', key: 'ada' })))
    assert.equal(takes.filter(({ status }) => status === 200).length, 10, more)
    const opened = await post(at(0), 'open', { policy: 'team', key: 'bea', expect: 9 })
    await post(at(1), 'close', { hold: opened.body.hold, cost: 9 })
    await post(at(0), 'take', { policy: 'team', key: 'bea' })
    await until('all are announced', () => Promise.resolve(shown().length >= 4))
    await Promise.all(nodes.map((node) => node.end('SIGTERM')))
    assert.deepEqual(
      shown()
        .map(({ key, threshold }) => `${key} ${threshold}`)
        .sort(),
      ['ada 100%', 'ada 80%', 'bea 100%', 'bea 80%'],
      more,
    )
  }
})

test('over gRPC, Envoy and RESP answers name the soft limits, and two nodes over one Redis announce each once', async (t) => {
  const redis = await RedisProcess.start()
  t.after(() => redis.stop())
  const { url, shown } = await receiver(t, () => 200)
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-soft-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const storage = `storage: { redis: { url: "${redis.url}", timeout: 10s, mode: exact } }`
  writeFileSync(join(folder, 'gate.yaml'), `${POLICIES}${storage}\nwebhook: { url: "${url}" }\n`)
  const rules = `domain: edge
descriptors:
  - { key: user, rate_limit: { unit: year, requests_per_unit: 10, soft: ['80%', '100%'] } }
  - { key: plain, rate_limit: { unit: year, requests_per_unit: 10 } }
  - { key: "quoted\\"", value: x, rate_limit: { unit: year, requests_per_unit: 10, soft: ['10%'] } }
`
  writeFileSync(join(folder, 'rules.yaml'), rules)
  const environment = { LIMIT_RESPONSE_HEADERS_ENABLED: 'true', RESPONSE_DYNAMIC_METADATA: 'true' }
  Object.assign(process.env, environment)
  t.after(() => {
    for (const name of Object.keys(environment)) delete process.env[name]
  })
  const nodes = await Promise.all([1, 2].map(() => runNode(t, readConfig(folder))))
  const at = (i: number) => nodes[i % 2] as (typeof nodes)[number]
  const envoy = async (i: number, ...keys: string[]) => {
    const descriptors = keys.map((key) => ({ entries: [{ key, value: 'x' }] }))
    const answer = await at(i).grpc.call(Envoy.method.shouldRateLimit, { domain: 'edge', descriptors })
    const soft = answer.responseHeadersToAdd.find(({ key }) => key === 'RateLimit-Soft')?.value
    return [answer.overallCode, soft, answer.dynamicMetadata?.soft] as const
  }
  for (let i = 0; i < 7; i++) assert.deepEqual(await envoy(i, 'user'), [1, undefined, undefined])
  assert.deepEqual(await envoy(0, 'user', 'plain'), [1, '"edge.user"', ['edge.user']])
  const both = ['edge.user', 'edge.quoted"_x']
  assert.deepEqual(await envoy(1, 'user', 'quoted"'), [1, '"edge.user", "edge.quoted\\"_x"', both])
  assert.deepEqual(await envoy(0, 'user'), [1, '"edge.user"', ['edge.user']])
  assert.deepEqual(await envoy(1, 'user'), [2, '"edge.user"', ['edge.user']])
  assert.deepEqual(await envoy(1, 'plain'), [1, undefined, undefined])

  const { grpc } = at(0)
  const take = (cost: number) => grpc.call(Limiter.method.take, { policy: 'team', keys: ['ada'], cost: BigInt(cost) })
  assert.deepEqual([(await take(7)).soft, (await take(1)).soft], [[], ['team']])
  const opened = await grpc.call(Limiter.method.open, {
    policy: 'api',
    keys: ['acme', 'bea'],
    expect: { cost: { case: 'tokens', value: 9n } },
  })
  assert.deepEqual(opened.decision?.soft, ['user'])
  const closing = { holdId: opened.holdId, cost: { cost: { case: 'tokens' as const, value: 60n } } }
  assert.deepEqual((await at(1).grpc.call(Limiter.method.close, closing)).decision?.soft, ['org', 'user'])

  const { resp } = at(1)
  const send = async (...words: string[]) => (await resp.sendCommand(words)) as unknown as unknown[]
  assert.deepEqual((await send('SG.TAKE', 'team', 'cleo', '8')).slice(5), [['team']])
  assert.deepEqual((await send('SG.PEEK', 'team', 'dan')).slice(5), [[]])
  const work = await send('SG.OPEN', 'team', 'dan', 'EXPECT', '8')
  assert.deepEqual([work.length, work.at(-1)], [9, ['team']])
  assert.deepEqual((await send('SG.CLOSE', String(work[7]), '10')).at(-1), ['team'])

  const expected = ['x 80%', 'x 100%', 'x 10%', 'ada 80%', 'bea 90%', 'acme 50%', 'cleo 80%', 'dan 80%', 'dan 100%']
  await until('all are announced', () => Promise.resolve(shown().length >= expected.length))
  const announced = shown().map(({ policy, key, threshold }) => `${policy === 'team' || policy === 'api' ? key : 'x'} ${threshold}`)
  assert.deepEqual(announced.sort(), expected.sort())
})

test('a receiver that fails twice has the announcement once it works, under one id', async (t) => {
  const { url, posts } = await receiver(t, (n) => (n <= 2 ? 503 : 204))
  const sender = webhook(url)
  sender.announce(REACHED)
  await until('it is delivered', () => Promise.resolve(sender.counts.delivered === 1))
  assert.deepEqual([posts.length, new Set(posts.map(({ headers }) => headers['webhook-id'])).size], [3, 1])
  assert.deepEqual(sender.counts, { delivered: 1, failed: 0, dropped: 0, attemptsFailed: 2 })
  assert.equal(posts[0]?.headers['webhook-signature'], undefined)
})

test('a receiver that refuses or redirects is not asked again', async (t) => {
  for (const status of [400, 302]) {
    const { url, posts } = await receiver(t, () => status)
    const sender = webhook(url)
    sender.announce(REACHED)
    await until('it is given up', () => Promise.resolve(sender.counts.failed === 1))
    assert.equal(posts.length, 1)
  }
})

test('a receiver that hangs is tried so often, holds no decision up, and what does not fit is counted', async (t) => {
  const { url, posts } = await receiver(t, () => undefined)
  const sender = webhook(url, { timeoutMs: 100, retries: 1 })
  sender.announce(REACHED)
  await until('it is given up', () => Promise.resolve(sender.counts.failed === 1))
  assert.deepEqual([posts.length, sender.counts.attemptsFailed], [2, 2])

  const hanging = webhook(url, { timeoutMs: 60_000 })
  for (let i = 0; i < 1_100; i++) hanging.announce({ ...REACHED, key: `k${i}` })
  assert.deepEqual([hanging.size, hanging.counts.dropped], [1_008, 92])
  await hanging.stop(NOW)
  assert.deepEqual([hanging.size, hanging.counts.dropped + hanging.counts.failed], [0, 1_100])

  const service = await runService(t, `${POLICIES}webhook: { url: "${url}", timeout: 60s }\n`, { log: createLog('silent') })
  const keys = Array.from({ length: 50 }, (_, i) => `k${i}`)
  for (const key of keys) assert.equal((await post(service, 'take', { policy: 'team', key, cost: 8 })).status, 200)
})

test('another receiver and another secret take effect at a reload: what is under way ends as it began, and nothing is sent twice', async (t) => {
  let answer: (() => void) | undefined
  const before = await receiver(
    t,
    (n) => (n === 1 ? undefined : 503),
    (respond) => {
      answer = respond
    },
  )
  const after = await receiver(t, () => 200)
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-webhook-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const write = (section: string): void => writeFileSync(join(folder, 'webhook.yaml'), section)
  writeFileSync(join(folder, 'gate.yaml'), POLICIES)
  write(`webhook: { url: "${before.url}", retries: 0 }\n`)
  const source = { path: folder, read: () => readConfig(folder) }
  const service = await runService(t, readConfig(folder), { clock: manualClock(0), source, watchMs: 10, log: createLog('silent') })
  const reach = (key: string) => post(service, 'take', { policy: 'team', key, cost: 8 })
  const changed = async (section: string): Promise<void> => {
    const reloads = service.reloader?.state.succeeded ?? 0
    write(section)
    await until('it is reloaded', async () => (service.reloader?.state.succeeded ?? 0) > reloads)
  }
  await reach('ada')
  await until('it is under way', async () => before.posts.length === 1)
  await changed(`webhook: { url: "${after.url}", secret: ${SECRET} }\n`)
  answer?.()
  await until(
    'its answer counts',
    async () => (await metricOf(service, 'sluicegate_webhook_announcements_total', { result: 'delivered' })) === 1,
  )
  await reach('bea')
  await until('the other one receives', async () => after.posts.length === 1)
  const [{ headers, body } = assert.fail()] = after.posts
  const [id, at] = [headers['webhook-id'], headers['webhook-timestamp']]
  assert.equal(headers['webhook-signature'], `v1,${createHmac('sha256', SECRET).update(`${id}.${at}.${body}`).digest('base64')}`)
  await changed('')
  await reach('cleo')
  await changed(`webhook: { url: "${after.url}" }\n`)
  await reach('dan')
  await until('it receives again', async () => after.posts.length === 2)
  assert.equal(after.posts[1]?.headers['webhook-signature'], undefined)
  assert.deepEqual([before.shown().map(({ key }) => key), after.shown().map(({ key }) => key)], [['ada'], ['bea', 'dan']])
})

test('what one receiver refuses, and what waits for it, another one receives at once; without one it is dropped', async (t) => {
  const gone = await receiver(t, () => 503)
  const { url, posts } = await receiver(t, () => 200)
  const config = { url: gone.url, secret: undefined, timeoutMs: 5_000, retries: 20 }
  const sender = new Webhook(config, createLog('silent'), 3_600_000)
  for (let i = 0; i < 20; i++) sender.announce({ ...REACHED, key: `k${i}` })
  await until('they pause', () => Promise.resolve(sender.counts.attemptsFailed === 8))
  sender.reload({ webhook: { ...config } }).commit()
  sender.reload({ webhook: { ...config, url } }).commit()
  await until('all are delivered', () => Promise.resolve(sender.counts.delivered === 20))
  assert.deepEqual([posts.length, gone.posts.length], [20, 8])
  const ids = (all: readonly Post[]): unknown[] => all.map(({ headers }) => headers['webhook-id'])
  assert.equal(
    ids(gone.posts).every((id) => ids(posts).includes(id)),
    true,
  )

  const hanging = new Webhook(config, createLog('silent'), 3_600_000)
  for (let i = 0; i < 20; i++) hanging.announce(REACHED)
  hanging.reload({ webhook: undefined }).commit()
  await until('none waits', () => Promise.resolve(hanging.size === 0))
  hanging.announce(REACHED)
  assert.deepEqual([hanging.counts.dropped, hanging.counts.delivered, gone.posts.length], [20, 0, 16])
})

test('a receiver that is gone is given up', async (t) => {
  const { url } = await receiver(t, () => 200)
  const gone = new URL(url)
  gone.port = '1'
  const sender = webhook(gone.href, { retries: 2 })
  sender.announce(REACHED)
  await until('it is given up', () => Promise.resolve(sender.counts.failed === 1))
  assert.equal(sender.counts.attemptsFailed, 3)
})
