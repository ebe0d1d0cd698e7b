import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { longTest } from 'sluicegate-testkit'
import { type Answering, LimitedServer, withLimitedAgent } from 'sluicegate-testkit/outbound/limited-server.js'
import { turns, turnsUntil } from 'sluicegate-testkit/turns.js'
import { request } from 'undici'
import { manualClock } from '../time/clock.js'

const LARGE = 500_000
const large: Answering = (_, response) => void response.end(Buffer.alloc(LARGE))

test('with undici, too, an unread body frees its place after bodyTimeout, and stays readable', {
  timeout: 20_000,
}, async () => {
  const clock = manualClock()
  await withLimitedAgent(large, { clock, concurrency: 1, bodyTimeout: 1_000 }, async ({ server, dispatcher, stats }) => {
    const first = await request(server.url, { dispatcher })
    const second = request(server.url, { dispatcher })
    await turnsUntil(() => first.body.readableLength > 0 && first.body.readableLength >= first.body.readableHighWaterMark)
    await turns(20)
    assert.equal(stats().waiting, 1)
    clock.advance(1_000)
    const { body } = await second
    assert.equal((await body.arrayBuffer()).byteLength, LARGE)
    assert.equal((await first.body.arrayBuffer()).byteLength, LARGE)
    assert.deepEqual([stats().sent, stats().inFlight], [2, 0])
  })
})

test('a reader who continues in time keeps the place', { timeout: 20_000 }, async () => {
  const clock = manualClock()
  await withLimitedAgent(large, { clock, concurrency: 1, bodyTimeout: 1_000 }, async ({ server, dispatcher, stats }) => {
    const { body } = await request(server.url, { dispatcher })
    const second = request(server.url, { dispatcher })
    let bytes = 0
    for await (const chunk of body) {
      bytes += (chunk as Buffer).length
      if (bytes < LARGE) assert.equal(stats().sent, 1)
      await turns(2)
      clock.advance(900)
    }
    assert.equal((await (await second).body.arrayBuffer()).byteLength, LARGE)
  })
})

longTest('an unread body does not keep the process alive, but a request waiting for its place does', { timeout: 60_000 }, async () => {
  const server = await LimitedServer.answering((_, response) => void response.end('body'))
  const program = (calls: number): string => `
    import { limitedFetch } from ${JSON.stringify(new URL('./index.js', import.meta.url).href)}
    const polite = limitedFetch(fetch, { concurrency: 1, bodyTimeout: ${calls > 1 ? 50 : 3_600_000} })
    for (let i = 0; i < ${calls}; i++) console.log((await polite('${server.url}')).status)`
  try {
    for (const calls of [1, 3]) {
      const options = { cwd: fileURLToPath(new URL('.', import.meta.url)) }
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program(calls)], options)
      assert.equal(stdout, '200\n'.repeat(calls))
    }
  } finally {
    await server.stop()
  }
})
