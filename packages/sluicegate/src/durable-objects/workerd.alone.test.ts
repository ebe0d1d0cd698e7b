import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { WorkerRuntime } from 'sluicegate-testkit/workers/worker-runtime.js'
import type { Decision } from '../decision/decision.js'

// In Cloudflare's own runtime. The limits of time in it are far above what any machine needs.

const EXAMPLE = fileURLToPath(new URL('../../../../examples/cloudflare', import.meta.url))
const resolveDir = fileURLToPath(new URL('.', import.meta.url))

const WORKER = `
import { env, waitUntil } from 'cloudflare:workers'
import { createLimiter, fixedWindow, slidingLog, tokenBucket } from 'sluicegate'
import { createDurableObjectLimiter, limiterObject } from 'sluicegate/durable-objects'
import { rateLimit } from 'sluicegate/fetch'
import { header } from 'sluicegate/keys'

const policies = {
  exact: slidingLog({ limit: 50, window: '1h', name: 'exact' }),
  leased: tokenBucket({ limit: 200, window: '1h', burst: 200, name: 'leased' }),
  window: fixedWindow({ limit: 200, window: '30d', name: 'window' }),
  short: tokenBucket({ limit: 1000, window: '100ms', burst: 10, name: 'short' }),
}
export const Limits = limiterObject(Object.values(policies))
const limiters = Object.fromEntries(Object.entries(policies).map(([name, policy]) => [
  name,
  createDurableObjectLimiter(policy, { namespace: env.LIMITS, waitUntil, timeoutMs: 60_000, outage: 'closed' }),
]))
let memory
const limit = rateLimit({ policy: () => policies.exact, key: header('x-key') })
export default {
  async fetch(request) {
    const [, name, key] = new URL(request.url).pathname.split('/')
    if (name === 'memory') return Response.json((memory ??= createLimiter(policies.exact)).take(key))
    if (name === 'middleware') return (await limit(request)) ?? new Response('passed')
    return Response.json(await limiters[name].take(key))
  },
}
`

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

test('three Workers take from one object as many tokens as the policy has, and after a restart no more', async () => {
  const folder = await storage()
  const first = await WorkerRuntime.start({ contents: WORKER, resolveDir }, { workers: 3, storage: folder })
  assert.equal(await admitted(first, '/exact/ada', 150, 3), 50)
  assert.equal(await admitted(first, '/exact/bob', 20, 3), 20)
  const leased = await admitted(first, '/window/ada', 600, 3)
  assert.ok(leased > 100 && leased <= 200, `${leased} were admitted`)
  await first.stop()
  const second = await WorkerRuntime.start({ contents: WORKER, resolveDir }, { workers: 3, storage: folder })
  assert.equal(await admitted(second, '/exact/ada', 30, 3), 0)
  assert.equal(await admitted(second, '/exact/bob', 60, 3), 30)
  assert.ok(leased + (await admitted(second, '/window/ada', 300, 3)) <= 200)
  await second.stop()
})

test('the limiter in memory and the fetch middleware work in a Worker', async () => {
  const runtime = await WorkerRuntime.start({ contents: WORKER, resolveDir })
  assert.equal(await admitted(runtime, '/memory/ada', 80), 50)
  const statuses = await Promise.all(Array.from({ length: 60 }, async () => (await runtime.fetch('/middleware', { 'x-key': 'ada' })).status))
  assert.equal(statuses.filter((status) => status === 200).length, 50)
  assert.equal(statuses.filter((status) => status === 429).length, 10)
  await runtime.stop()
})

test('the example limits each API key, with headers and a problem', async () => {
  const contents = await readFile(join(EXAMPLE, 'worker.js'), 'utf8')
  const runtime = await WorkerRuntime.start({ contents, resolveDir: EXAMPLE })
  const statuses: number[] = []
  for (let i = 0; i < 22; i++) statuses.push((await runtime.fetch('/api/hello', { 'x-api-key': 'ada' })).status)
  assert.deepEqual(statuses.slice(0, 19), Array.from({ length: 19 }, () => 200))
  assert.equal(statuses.at(-1), 429)
  const denied = await runtime.fetch('/api/hello', { 'x-api-key': 'ada' })
  assert.match(denied.headers.get('content-type') ?? '', /problem\+json/)
  assert.equal((await runtime.fetch('/api/hello', { 'x-api-key': 'bob' })).status, 200)
  await runtime.stop()
})
