import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { connectTo, parseResponse, readToEnd } from 'sluicegate-testkit/service/many-connections.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import type { Service } from './service.js'

const BODY = '{"policy":"burst","key":"alice"}'

/** A POST whose body's last byte is still to come, known to have reached the service, which has requested the body. */
async function requestInFlight(url: string): Promise<{ socket: Socket; finish(): Promise<string> }> {
  const socket = await connectTo(url)
  const head = [
    'POST /v1/take HTTP/1.1',
    'Host: x',
    'Content-Type: application/json',
    `Content-Length: ${BODY.length}`,
    'Expect: 100-continue',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  const [interim] = (await once(socket, 'data')) as [Buffer]
  assert.match(interim.toString(), /^HTTP\/1\.1 100 /)
  socket.write(BODY.slice(0, -1))
  return {
    socket,
    finish() {
      const answer = readToEnd(socket)
      socket.write(BODY.slice(-1))
      return answer
    },
  }
}

async function refusesConnections({ url }: Service): Promise<boolean> {
  return connectTo(url).then(
    (socket) => {
      socket.destroy()
      return false
    },
    () => true,
  )
}

test('while it stops, /readyz says so, and a request in flight is finished', async (t) => {
  const service = await runService(t)
  const { finish } = await requestInFlight(service.url)
  const stopped = service.stop({ drainMs: 500, finishMs: 10_000 })
  const ready = await fetch(`${service.url}/readyz`)
  assert.deepEqual([ready.status, await ready.text(), ready.headers.get('connection')], [503, 'stopping\n', 'close'])
  const { status, body } = parseResponse(await finish())
  assert.equal(status, 200)
  assert.equal(JSON.parse(body).remaining, 99)
  await stopped
  assert.equal(await refusesConnections(service), true)
})

test('a request that takes longer than the time limit is cut off', async (t) => {
  const service = await runService(t)
  const { socket } = await requestInFlight(service.url)
  const answer = readToEnd(socket)
  await service.stop({ drainMs: 0, finishMs: 50 })
  assert.equal(await answer, '')
  assert.equal(await refusesConnections(service), true)
})

test('idle connections and open pages do not delay the stop', async (t) => {
  const service = await runService(t)
  const idle = readToEnd(await connectTo(service.url))
  const page = await connectTo(service.url)
  page.write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n')
  await once(page, 'data')
  const pageEnd = readToEnd(page)
  const startMs = performance.now()
  await service.stop({ drainMs: 0, finishMs: 30_000 })
  await Promise.all([idle, pageEnd])
  assert.ok(performance.now() - startMs < 15_000)
})

test('a second stop has no further effect', async (t) => {
  const service = await runService(t)
  await Promise.all([service.stop(), service.stop()])
  assert.equal(await refusesConnections(service), true)
})
