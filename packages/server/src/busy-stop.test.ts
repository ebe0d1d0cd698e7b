import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { runService } from 'sluicegate-testkit/service/running-service.js'

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
