import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { type Answering, withLimitedAgent } from 'sluicegate-testkit/outbound/limited-server.js'
import { turns, turnsUntil } from 'sluicegate-testkit/turns.js'
import { request } from 'undici'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../policy/single-policy.js'
import { manualClock } from '../time/clock.js'
import type { OutboundOptions } from './outbound-options.js'

test('a refusal with an endless body is broken off', { timeout: 20_000 }, async () => {
  let endless: ServerResponse | undefined
  const answer: Answering = (_, response) => {
    if (endless !== undefined) return void response.end('ok')
    endless = response.writeHead(429, { 'Retry-After': '0' })
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(20_000))) {}
    }
    response.on('drain', more)
    more()
  }
  await withLimitedAgent(answer, { clock: manualClock() }, async ({ server, dispatcher }) => {
    const { statusCode, body } = await request(server.url, { dispatcher })
    assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    await turnsUntil(() => endless?.destroyed === true)
  })
})

test('a refusal whose body drips delays no request, and keeps its place for at most a second', { timeout: 20_000 }, async () => {
  for (const concurrency of [1, 2]) {
    const clock = manualClock()
    let dripping: ServerResponse | undefined
    const answer: Answering = (_, response) => {
      if (dripping !== undefined) return void response.end('ok')
      dripping = response.writeHead(429, { 'Retry-After': '0' })
      dripping.write('a drop')
    }
    let retries = 0
    await withLimitedAgent(answer, { clock, concurrency, onRetry: () => retries++ }, async ({ server, dispatcher, stats }) => {
      const answered = request(server.url, { dispatcher })
      await turnsUntil(() => retries === 1)
      if (concurrency === 1) {
        clock.advance(999)
        await turns(20)
        assert.equal(stats().sent, 1)
        clock.advance(1)
      }
      const { statusCode, body } = await answered
      assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
      clock.advance(1_000)
      await turnsUntil(() => dripping?.destroyed === true)
      assert.equal(stats().sent, 2)
    })
  }
})

test('a refusal that is read to its end keeps its connection', async () => {
  const clock = manualClock()
  const sockets = new Set<Socket>()
  let isOver = false
  const answer: Answering = ({ socket }, response) => {
    const isFirst = sockets.size === 0
    sockets.add(socket)
    response.on('close', () => {
      isOver = true
    })
    if (isFirst) response.writeHead(429, { 'Retry-After': '1' }).end('too many')
    else response.end('ok')
  }
  let retries = 0
  await withLimitedAgent(answer, { clock, onRetry: () => retries++ }, async ({ server, dispatcher }) => {
    const answered = request(server.url, { dispatcher })
    await turnsUntil(() => retries === 1 && isOver)
    await turns(20)
    clock.advance(1_000)
    const { statusCode, body } = await answered
    assert.deepEqual([statusCode, await body.text()], [200, 'ok'])
    assert.deepEqual([server.asked.length, sockets.size], [2, 1])
  })
})

test('a hook that throws fails its request, without a retry', async () => {
  const refusing: Answering = (_, response) => void response.writeHead(429, { 'Retry-After': '0' }).end('too many')
  for (const [hook, sent] of [
    ['onWait', 0],
    ['onThrottle', 1],
    ['onRetry', 1],
  ] as const) {
    const asked: unknown[] = []
    const options: OutboundOptions = {
      limiter: createLimiter(tokenBucket({ limit: 9, window: '1h' })),
      retry: (_, { error }) => asked.push(error) > 0,
      [hook]: () => {
        throw new Error(hook)
      },
    }
    await withLimitedAgent(refusing, options, async ({ server, dispatcher, stats }) => {
      await assert.rejects(request(server.url, { dispatcher }), new RegExp(hook))
      await turnsUntil(() => stats().inFlight === 0 && stats().waiting === 0)
      assert.equal(server.asked.length, sent, hook)
      assert.deepEqual(asked, hook === 'onRetry' ? [undefined] : [], hook)
    })
  }
})
