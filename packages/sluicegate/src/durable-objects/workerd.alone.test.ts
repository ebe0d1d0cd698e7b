import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { longTest, shortOrLong } from 'sluicegate-testkit'
import { until } from 'sluicegate-testkit/servers/until.js'
import { type RuntimeOptions, WorkerRuntime } from 'sluicegate-testkit/workers/kept-storage.js'
import type { Decision } from '../decision/decision.js'

// In Cloudflare's own runtime. The limits of time in it are far above what any machine needs.

const EXAMPLE = fileURLToPath(new URL('../../../../examples/cloudflare', import.meta.url))
const resolveDir = fileURLToPath(new URL('.', import.meta.url))

const WORKER = `
import { env, waitUntil } from 'cloudflare:workers'
import { createLimiter, fixedWindow, tokenBucket } from 'sluicegate'
import { durableObjects, limiterObject } from 'sluicegate/durable-objects'
import { rateLimit } from 'sluicegate/fetch'
import { header } from 'sluicegate/keys'

const policies = {
  // It gives less than a token in a lease, so that it is not leased.
  exact: tokenBucket({ limit: 10, window: '1h', burst: 50, name: 'exact' }),
  window: fixedWindow({ limit: 200, window: '30d', name: 'window' }),
  short: tokenBucket({ limit: 1000, window: '100ms', burst: 10, name: 'short' }),
}
/** Says of itself how many entries it stores. */
export class Limits extends limiterObject(Object.values(policies)) {
  constructor(state, env) {
    super(state, env)
    this.stored = async () => (await state.storage.list()).size
    this.die = () => state.abort('evicted')
  }
  async fetch(request) {
    const [, what, when] = new URL(request.url).pathname.split('/')
    if (what === 'stored') return Response.json(await this.stored())
    if (what === 'dies') {
      this.dies = when
      return new Response('soon')
    }
    if (this.dies === 'before') this.die()
    const answering = super.fetch(request)
    if (this.dies === 'during') this.die()
    const answer = await answering
    if (this.dies === 'after') this.die()
    return answer
  }
}
const limiters = Object.fromEntries(Object.entries(policies).map(([name, policy]) => [
  name,
  createLimiter(policy, { store: durableObjects(env.LIMITS, { waitUntil }), timeout: 60_000, outage: 'closed' }),
]))
let memory
const limit = rateLimit({ policy: () => policies.exact, key: header('x-key') })
export default {
  async fetch(request) {
    const [, name, key, when] = new URL(request.url).pathname.split('/')
    if (name === 'dies') return env.LIMITS.get(env.LIMITS.idFromName('exact\\n' + key)).fetch('https://limiter/dies/' + when)
    if (name === 'stored') return env.LIMITS.get(env.LIMITS.idFromName(key.replace('.', '\\n'))).fetch('https://limiter/stored')
    if (name === 'memory') return Response.json((memory ??= createLimiter(policies.exact)).take(key))
    if (name === 'middleware') return (await limit(request)) ?? new Response('passed')
    return Response.json(await limiters[name].take(key))
  },
}
`

async function started(context: TestContext, options?: RuntimeOptions, source = { contents: WORKER, resolveDir }): Promise<WorkerRuntime> {
  const runtime = await WorkerRuntime.start(source, options)
  context.after(() => runtime.stop())
  return runtime
}

const folders: string[] = []
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

async function storage(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'objects-'))
  folders.push(folder)
  return folder
}

async function admitted(runtime: WorkerRuntime, path: string, times: number, workers = 1): Promise<number> {
  const taken = Array.from({ length: times }, async (_, i) => {
    const response = await runtime.fetch(path, {}, i % workers)
    assert.equal(response.status, 200)
    return ((await response.json()) as Decision).allowed
  })
  return (await Promise.all(taken)).filter(Boolean).length
}

longTest('three Workers take from one object as many tokens as the policy has, and after a restart no more', async (context) => {
  const folder = await storage()
  const first = await started(context, { workers: 3, storage: folder })
  assert.equal(await admitted(first, '/exact/ada', 150, 3), 50)
  assert.equal(await admitted(first, '/exact/bob', 20, 3), 20)
  const leased = await admitted(first, '/window/ada', shortOrLong(250, 600), 3)
  assert.ok(leased > 100 && leased <= 200, `${leased} were admitted`)
  await first.stop()
  const second = await started(context, { workers: 3, storage: folder })
  assert.equal(await admitted(second, '/exact/ada', 30, 3), 0)
  assert.equal(await admitted(second, '/exact/bob', 60, 3), 30)
  assert.ok(leased + (await admitted(second, '/window/ada', shortOrLong(120, 300), 3)) <= 200)
})

test('an object that is evicted in the middle of a call answers the next one, charges that one at most once, and admits no more', async (context) => {
  const runtime = await started(context)
  const take = async (): Promise<Decision> => (await runtime.fetch('/exact/ada')).json() as Promise<Decision>
  const deaths = ['before', 'during', 'after', 'during', 'after', 'before', 'after'] as const
  let passed = 0
  for (const when of deaths) {
    assert.equal((await take()).allowed, true)
    passed++
    assert.equal((await runtime.fetch(`/dies/ada/${when}`)).status, 200)
    const { allowed, source } = await take()
    assert.deepEqual([allowed, source], [false, 'outage'], when)
  }
  for (let decision = await take(); decision.allowed; decision = await take()) {
    assert.equal(decision.source, 'store')
    passed++
  }
  assert.ok(passed <= 50 && passed >= 50 - deaths.length, `${passed} passed`)
})

test('an alarm deletes what an object stored once its key is full', async (context) => {
  const runtime = await started(context)
  const stored = async (key: string): Promise<unknown> => (await runtime.fetch(`/stored/${key}`)).json()
  await admitted(runtime, '/short/ada', 10)
  await admitted(runtime, '/exact/ada', 1)
  await until('its storage is empty', async () => (await stored('short.ada')) === 0)
  assert.ok(Number(await stored('exact.ada')) > 0)
})

test('the limiter in memory and the fetch middleware work in a Worker', async (context) => {
  const runtime = await started(context)
  assert.equal(await admitted(runtime, '/memory/ada', 80), 50)
  const statuses = await Promise.all(
    Array.from({ length: 60 }, async () => (await runtime.fetch('/middleware', { 'x-key': 'ada' })).status),
  )
  assert.equal(statuses.filter((status) => status === 200).length, 50)
  assert.equal(statuses.filter((status) => status === 429).length, 10)
})

test('the example limits each API key, with headers and a problem', async (context) => {
  const contents = await readFile(join(EXAMPLE, 'worker.js'), 'utf8')
  const page = await readFile(join(EXAMPLE, '../../docs/edge.md'), 'utf8')
  assert.ok(
    page.includes(contents) && page.includes(await readFile(join(EXAMPLE, 'wrangler.jsonc'), 'utf8')),
    'docs/edge.md shows the example',
  )
  const runtime = await started(context, {}, { contents, resolveDir: EXAMPLE })
  const take = (): Promise<Response> => runtime.fetch('/api/hello', { 'x-api-key': 'ada' })
  const startMs = performance.now()
  let passed = 0
  let denied = await take()
  for (; denied.status === 200; denied = await take()) passed++
  assert.equal(denied.status, 429)
  const refilled = ((performance.now() - startMs) * 100) / 60_000
  assert.ok(passed >= 20 && passed <= 20 + refilled, `${passed} passed`)
  assert.match(denied.headers.get('content-type') ?? '', /problem\+json/)
  assert.equal((await runtime.fetch('/api/hello', { 'x-api-key': 'bob' })).status, 200)
})
