import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from 'sluicegate-testkit'
import { listening } from 'sluicegate-testkit/adapters/harness.js'
import { ask, type PlainRequest, pipeline, plainFacts } from 'sluicegate-testkit/adapters/http-client.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { concurrency, createLimiter, manualClock } from '../index.js'
import { Middleware, type Pass } from './middleware.js'
import { settleAtEnd } from './node-exchange.js'

freshWarnings()

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Serves by Node alone. */
async function serving(t: TestContext, handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const { port, close } = await listening(createServer(handle))
  t.after(close)
  return port
}

function warnings(t: TestContext): string[] {
  const seen: string[] = []
  const listener = ({ name }: Error): void => void seen.push(name)
  process.on('warning', listener)
  t.after(() => process.off('warning', listener))
  return seen
}

test('a response that waits behind others has ended when their connection is closed, also where its request had been closed before', async (t) => {
  const seen: (number | undefined)[] = []
  let closed = 0
  const port = await serving(t, (request, response) => {
    settleAtEnd(request, response, (status) => void seen.push(status))
    request.on('close', () => closed++)
    request.resume()
  })
  const warned = warnings(t)
  const hangUp = pipeline(port, '/', 20)
  await until('all requests have been read', () => closed === 20)
  assert.deepEqual(seen, [])
  hangUp()
  await until('all have ended', () => seen.length === 20)
  assert.deepEqual([...new Set(seen)], [undefined])
  assert.deepEqual(warned, [], 'nor does Node warn of listeners')
})

test('each listener of a response is called once, with its status, and Node does not warn of too many listeners', async (t) => {
  const seen: (number | undefined)[] = []
  const port = await serving(t, (request, response) => {
    for (let i = 0; i < 20; i++) settleAtEnd(request, response, (status) => void seen.push(status))
    response.statusCode = 418
    response.end()
  })
  const warned = warnings(t)
  await ask(port, '/')
  await until('all are seen', () => seen.length === 20)
  assert.deepEqual([...new Set(seen)], [418])
  await ask(port, '/')
  await until('all are seen again', () => seen.length === 40)
  assert.deepEqual(warned, [])
})

test('a response that had ended before it was watched counts', async (t) => {
  const seen: (number | undefined)[] = []
  const port = await serving(t, (request, response) => {
    response.on('finish', () => settleAtEnd(request, response, (status) => void seen.push(status)))
    response.on('close', () => settleAtEnd(request, response, (status) => void seen.push(status)))
    response.end()
  })
  await ask(port, '/')
  await until('both are seen', () => seen.length === 2)
  assert.deepEqual(seen, [undefined, undefined])
})

test('a place is kept while a response is open, and comes back with its end', async (t) => {
  const clock = manualClock()
  const slots = createLimiter(concurrency({ limit: 1, ttl: '1m' }), { clock })
  const middleware = new Middleware<PlainRequest>({ limiter: slots, key: () => 'ada' }, { after: clock.after })
  let open: ServerResponse | undefined
  const port = await serving(t, (request, response) => {
    const { settle } = middleware.handle(plainFacts({}), {}) as Pass
    if (settle !== undefined) settleAtEnd(request, response, settle)
    open = response
  })
  const answer = ask(port, '/')
  await until('it has begun', () => open !== undefined)
  for (let i = 0; i < 20; i++) clock.advance(20_000)
  assert.equal(slots.peek('ada').remaining, 0)
  open?.end()
  await answer
  await until('it has ended', () => slots.peek('ada').remaining === 1)
})

test('of connections that were reset nothing is kept, however many responses waited on them', async (t) => {
  const settled = new Set<number>()
  const responses: WeakRef<ServerResponse>[] = []
  const port = await serving(t, (request, response) => {
    const i = responses.push(new WeakRef(response))
    settleAtEnd(request, response, () => void settled.add(i))
  })
  const requests = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(500)
  for (let connections = 1; connections <= 10; connections++) {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    socket.write(requests)
    await until('all are read', () => responses.length === 500 * connections)
    socket.resetAndDestroy()
    await until('all are settled', () => settled.size === responses.length)
  }
  await until('the responses are forgotten', () => {
    collectGarbage()
    return responses.every((response) => response.deref() === undefined)
  })
})
