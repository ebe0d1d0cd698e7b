import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { until } from 'sluicegate-testkit/servers/until.js'
import { WorkerRuntime } from 'sluicegate-testkit/workers/kept-storage.js'

// Clients that go while their request is under way, in Cloudflare's own runtime: it ends such a request without running any of its code again,
// except for what waitUntil was given.

const HOUR_MS = 3_600_000

const WORKER = `
import { env, waitUntil } from 'cloudflare:workers'
import { concurrency, createLimiter, tokenBucket } from 'sluicegate'
import { durableObjects, limiterObject } from 'sluicegate/durable-objects'

const policies = {
  exact: tokenBucket({ limit: 10, window: '1h', burst: 5, name: 'exact' }),
  leased: tokenBucket({ limit: 1000, window: '1s', burst: 1000, name: 'leased' }),
  permits: concurrency({ limit: 1, ttl: '1s', name: 'permits' }),
}
/** Answers nothing while it is shut, and says how many requests wait. */
export class Limits extends limiterObject(Object.values(policies)) {
  waiting = 0
  async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/shut') this.shut = new Promise((resolve) => (this.open = resolve))
    if (pathname === '/open') this.open?.()
    if (pathname !== '/') return Response.json(this.waiting)
    this.waiting++
    await this.shut
    this.waiting--
    return super.fetch(request)
  }
}
const options = { store: durableObjects(env.LIMITS, { waitUntil }), timeout: 10_000, outage: 'closed' }
const limiters = Object.fromEntries(Object.entries(policies).map(([name, policy]) => [name, createLimiter(policy, options)]))
const held = new Set()
const forever = () => new Promise((resolve) => setTimeout(resolve, ${HOUR_MS}))

export default {
  async fetch(request) {
    const [, verb, name, key] = new URL(request.url).pathname.split('/')
    if (verb === 'held') return Response.json(held.has(name))
    if (verb === 'take') return Response.json((await limiters[name].take(key)).allowed)
    if (verb === 'reserve') return Response.json((await limiters[name].reserve(key, 1, { maxWait: 3_600_000 })).waitMs)
    if (verb === 'hold') {
      const { allowed } = name === 'permits' ? await limiters[name].take(key) : await limiters[name].reserve(key, 1, { maxWait: 3_600_000 })
      if (!allowed) return Response.json(false)
      held.add(name)
      await forever()
    }
    return env.LIMITS.get(env.LIMITS.idFromName(name + '\\n' + key)).fetch('https://limiter/' + verb)
  },
}
`

let runtime: WorkerRuntime
const clients: Socket[] = []
before(async () => {
  runtime = await WorkerRuntime.start({ contents: WORKER, resolveDir: fileURLToPath(new URL('.', import.meta.url)) })
})
after(async () => {
  for (const client of clients) client.destroy()
  await runtime?.stop()
})

/** A client that has sent a request and waits. The runtime notices at once that it has gone when it resets the connection. */
async function client(path: string): Promise<Socket> {
  const socket = connect(runtime.port, '127.0.0.1')
  clients.push(socket)
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  return socket
}

async function asked<Answer>(path: string): Promise<Answer> {
  return (await (await runtime.fetch(path)).json()) as Answer
}

async function admitted(path: string, times: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: times }, () => asked<boolean>(path)))
  return answers.filter(Boolean).length
}

test('a client that goes before the answer is charged once', async () => {
  await asked('/shut/exact/ada')
  const gone = await client('/take/exact/ada')
  await until('the object has the request', async () => (await asked('/waiting/exact/ada')) === 1)
  gone.resetAndDestroy()
  await asked('/open/exact/ada')
  await until('the object has answered', async () => (await asked('/waiting/exact/ada')) === 0)
  assert.equal(await admitted('/take/exact/ada', 10), 4)
})

test('requests that wait for the lease of a client that has gone are answered', async () => {
  await asked('/shut/leased/ada')
  const gone = await client('/take/leased/ada')
  await until('the object has the request', async () => (await asked<number>('/waiting/leased/ada')) > 0)
  const others = admitted('/take/leased/ada', 20)
  gone.resetAndDestroy()
  await asked('/open/leased/ada')
  assert.equal(await others, 20)
})

test('a client that goes while it waits for its reservation has taken that one token', async () => {
  assert.equal(await admitted('/take/exact/bob', 10), 5)
  const gone = await client('/hold/exact/bob')
  await until('it has its reservation', () => asked<boolean>('/held/exact'))
  gone.resetAndDestroy()
  const waitMs = await asked<number>('/reserve/exact/bob')
  assert.ok(Math.abs(waitMs - (2 * HOUR_MS) / 10) < HOUR_MS / 20, `${waitMs} ms`)
})

test('the permit of a client that has gone ends by its ttl, and is given to one other', async () => {
  const gone = await client('/hold/permits/ada')
  await until('it has its permit', () => asked<boolean>('/held/permits'))
  gone.resetAndDestroy()
  await until('another has it', () => asked<boolean>('/take/permits/ada'))
  assert.ok((await admitted('/take/permits/ada', 5)) <= 1)
})
