import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { type TestContext, test } from 'node:test'
import { configFile, ended, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

const TAKE = ['take', 'api', 'alice'] as const
/** Colours, a title of the window, an 8-bit control sequence, a direction. */
const ESCAPES = '\x1b[31mred\x1b]0;title\x07\u009b2J\u202eback'

async function served(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('commands give up on a service that takes connections and says nothing, and on one that goes on without end', async (t) => {
  const server = createTcpServer(() => undefined).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const silent = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const slow = await served(t, (_, response) => {
    response.writeHead(200)
    setInterval(() => response.write('.'), 50).unref()
  })
  const commands = [
    [['health'], silent],
    [['health'], slow],
    [TAKE, silent],
    [TAKE, slow],
    [['top'], silent],
    [['top'], slow],
  ] as const
  await Promise.all(
    commands.map(async ([command, url]) => {
      const { code, err } = await ended(sluicegate(t, ...command, '--url', url, '--timeout', '300ms'))
      assert.deepEqual([code, err], [1, `sluicegate: ${url} has not answered within 0.3 s\n`], command[0])
    }),
  )
})

test('what a foreign server answers does not reach the terminal raw', async (t) => {
  const url = await served(t, (request, response) => {
    const isTake = request.url?.startsWith('/v1/take') === true
    response.writeHead(isTake ? 403 : 503).end(isTake ? JSON.stringify({ detail: ESCAPES }) : `${ESCAPES}\n${'line\n'.repeat(100)}`)
  })
  const all = await Promise.all([['health'], ['health', '--json'], TAKE].map((command) => ended(sluicegate(t, ...command, '--url', url))))
  for (const { code, out, err } of all) {
    assert.equal(code, 1)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
    assert.doesNotMatch(out + err, /[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]/)
  }
  const [health, json, take] = all
  assert.match(health?.out ?? '', /^\?\[31mred\?\]0;title\?\?2J\?back\n(?:line\n){4}$/)
  assert.deepEqual(JSON.parse(json?.out ?? ''), { ready: false, status: 503, says: [ESCAPES, 'line', 'line', 'line', 'line'] })
  assert.match(take?.err ?? '', /^sluicegate: \?\[31mred/)
})

test('load counts what was decided without a store that says nothing as errors', async (t) => {
  const server = createTcpServer(() => undefined).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const config = configFile(t, 'policies: { api: { algorithm: token-bucket, limit: 100, window: 1m } }\n')
  const target = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { code, out, err } = await ended(
    sluicegate(t, 'load', target, '--config', config, '--rate', '20', '--duration', '500ms', '--grace', '1s', '--json'),
  )
  assert.equal(code, 1, err)
  assert.ok(err.includes(`${target} answered none of 10 requests`), err)
  const { allowed, denied, errors } = JSON.parse(out)
  assert.deepEqual([allowed, denied, errors], [0, 0, 10])
})
