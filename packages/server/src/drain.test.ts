import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { longTest, shortOrLong } from 'sluicegate-testkit'
import { connectTo, parseResponse, readToEnd } from 'sluicegate-testkit/service/many-connections.js'
import { runService, TWO_POLICIES } from 'sluicegate-testkit/service/running-service.js'
import { type ServiceProcess, serveProcess } from 'sluicegate-testkit/service/sluicegate-process.js'
import type { Service } from './service.js'

const CLIENTS = 64
const TAKE = '/v1/take?policy=burst&key=alice'

interface Answer {
  readonly status: number
  readonly isLast: boolean
}

function ask(url: string, path: string, agent: Agent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url + path, { agent }, (response) => {
      response.resume()
      response.once('end', () => resolve({ status: response.statusCode ?? 0, isLast: response.headers.connection === 'close' }))
      response.once('error', reject)
    })
    sent.once('error', reject)
    sent.end()
  })
}

interface Load {
  answered: number
  /** Connections that were refused, as they are once the port is closed. */
  refused: number
  /** Requests that ended in anything but an answer or a refused connection. */
  readonly lost: string[]
}

/** Clients that keep their connection, open another after `Connection: close`, and send requests without a pause until their connection is refused. */
function underLoad(t: TestContext, { url }: ServiceProcess): { load: Load; ended: Promise<unknown> } {
  const load: Load = { answered: 0, refused: 0, lost: [] }
  const client = async (): Promise<void> => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    while (load.refused === 0) {
      try {
        await ask(url, TAKE, agent)
        load.answered++
      } catch (error) {
        const { code = String(error) } = error as NodeJS.ErrnoException
        if (code === 'ECONNREFUSED') load.refused++
        else load.lost.push(code)
      }
    }
  }
  return { load, ended: Promise.all(Array.from({ length: CLIENTS }, client)) }
}

for (const round of [1, 2, 3].slice(0, shortOrLong(1, 3))) {
  test(`${CLIENTS} clients under load lose no request to SIGTERM (${round})`, async (t) => {
    const service = await serveProcess(t, TWO_POLICIES, '--drain', '300ms')
    const { load, ended } = underLoad(t, service)
    while (load.answered < 500) await sleep(1)
    assert.equal(await service.end('SIGTERM'), 0)
    await ended
    assert.deepEqual(load.lost, [])
    assert.ok(load.refused > 0)
  })
}

test('while it drains, the port is open, /readyz says 503, /livez 200, and each answer is the last of its connection', async (t) => {
  const service = await serveProcess(t, TWO_POLICIES, '--drain', '2')
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  assert.deepEqual(await ask(service.url, TAKE, agent), { status: 200, isLast: false })
  const ended = service.end('SIGTERM')
  const [said] = (await once(service.child.stdout, 'data')) as [Buffer]
  assert.match(said.toString(), /^SIGTERM: answering for 2s more while \/readyz says 503, then finishing requests in flight/)
  assert.deepEqual(await ask(service.url, TAKE, agent), { status: 200, isLast: true })
  for (const [path, status] of [
    ['/readyz', 503],
    ['/healthcheck', 500],
    ['/livez', 200],
    ['/metrics', 200],
    ['/events', 503],
  ] as const) {
    assert.deepEqual(await ask(service.url, path, agent), { status, isLast: true })
  }
  assert.equal(await ended, 0)
})

longTest('SIGINT does not drain', async (t) => {
  const service = await serveProcess(t, TWO_POLICIES, '--drain', '1h')
  assert.equal(await service.end('SIGINT'), 0)
})

longTest('a second signal ends it at once, with 1', async (t) => {
  for (const second of ['SIGTERM', 'SIGINT'] as const) {
    const service = await serveProcess(t, TWO_POLICIES, '--drain', '1h')
    service.child.kill('SIGTERM')
    await once(service.child.stdout, 'data')
    assert.equal(await service.end(second), 1)
  }
})

longTest('the file can say how long it drains, and the command line wins', async (t) => {
  const slow = `${TWO_POLICIES}stop: { drain: 1h }\n`
  const service = await serveProcess(t, slow, '--drain', '0')
  assert.equal(await service.end('SIGTERM'), 0)
  const quick = await serveProcess(t, slow.replace('1h', '10ms'))
  assert.equal(await quick.end('SIGTERM'), 0)
})

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

/** Turns of the event loop, at each of which it is busy once: more than the service waits for until it closes its port. */
const TURNS = 10
const TURN_MS = 5

/** In its own thread: connects when it is woken, wakes the other side, and posts the status line of the answer, or the error. */
const CLIENT = `
  const { connect } = require('node:net')
  const { workerData: { port, signal }, parentPort } = require('node:worker_threads')
  const wake = (index) => { Atomics.store(signal, index, 1); Atomics.notify(signal, index) }
  parentPort.postMessage('ready')
  Atomics.wait(signal, 0, 0)
  let answer = ''
  const socket = connect(port, '127.0.0.1', () => {
    socket.write('GET /livez HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')
    wake(1)
  })
  socket.on('data', (chunk) => { answer += chunk })
  socket.on('error', (error) => { answer = error.code; wake(1) })
  socket.on('close', () => parentPort.postMessage(answer.split('\\r\\n')[0]))
`

for (let busyTurn = 1; busyTurn <= TURNS; busyTurn++) {
  test(`a connection made while the process is busy is answered or refused, and not reset: turn ${busyTurn} of a stop`, async (t) => {
    const service = await runService(t)
    const signal = new Int32Array(new SharedArrayBuffer(12))
    const client = new Worker(CLIENT, { eval: true, workerData: { port: Number(new URL(service.url).port), signal } })
    t.after(() => client.terminate())
    await once(client, 'message')
    const answered = once(client, 'message')
    let turns = 0
    const turning = setInterval(() => {
      if (++turns < busyTurn) return
      clearInterval(turning)
      // Right after the event loop has looked for connections. Busy for longer than a turn: the next timers are due before it looks again.
      setImmediate(() => {
        Atomics.store(signal, 0, 1)
        Atomics.notify(signal, 0)
        Atomics.wait(signal, 1, 0)
        Atomics.wait(signal, 2, 0, 4 * TURN_MS)
      })
    }, TURN_MS)
    await service.stop({ drainMs: 0, finishMs: 5_000 })
    const [answer] = (await answered) as [string]
    assert.ok(['HTTP/1.1 200 OK', 'ECONNREFUSED'].includes(answer), answer)
  })
}
