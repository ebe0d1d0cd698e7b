import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { FakeNet, refusal, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { LimitedServer, withLimitedAgent } from 'sluicegate-testkit/outbound/limited-server.js'
import { request } from 'undici'
import { concurrency, createLimiter, fixedWindow, manualClock } from '../index.js'
import { holdOf, limitedFetch, type OutboundOptions } from './index.js'

const START_MS = 1_789_000_020_000
const POLICY = fixedWindow({ limit: 100, window: 'day', name: 'spend' })

function metered(options: OutboundOptions = {}) {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(POLICY, { clock })
  const all: OutboundOptions = { limiter, key: () => 'model', cost: { expect: 40 }, attempts: 1, clock, ...options }
  return { clock, limiter, all, polite: limitedFetch(fetch, all), left: () => limiter.peek('model').remaining }
}

/** The hold of a body that has ended is closed in the next turn. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve))
}

/** A server whose answers begin, and end when the test says so. */
async function streaming(play: (url: string, answers: readonly ServerResponse[]) => Promise<void>, head: Record<string, string> = {}) {
  const answers: ServerResponse[] = []
  const server = await LimitedServer.answering((_, response) => {
    answers.push(response)
    response.writeHead(200, head).write('piece')
  })
  try {
    await play(`${server.url}/`, answers)
  } finally {
    await server.stop()
  }
}

test('a request holds what it may cost until its body has ended, and costs what was added', async () => {
  const { polite, left, limiter, clock } = metered()
  let seen = 0
  await streaming(async (url, answers) => {
    const response = await polite(url)
    seen = left()
    const hold = holdOf(response)
    assert.equal(hold?.add(10), true)
    const body = response.text()
    clock.advance(60_000)
    assert.deepEqual([hold.held, left()], [30, 60], 'renewed while it is read')
    answers[0]?.end('piece')
    assert.equal(await body, 'piecepiece')
    await nextTurn()
    assert.deepEqual([hold.used, left()], [10, 90])
  })
  assert.equal(seen, 60)
  assert.equal(limiter.peek('model').remaining, 90)
})

test('the head of the response may say the true cost', async () => {
  const { polite, left } = metered({ costOf: ({ status, header }) => (status === 200 ? Number(header('x-cost')) : undefined) })
  await streaming(
    async (url, answers) => {
      const response = await polite(url)
      assert.equal(left(), 60, 'not before the end')
      answers[0]?.end()
      await response.text()
      await nextTurn()
      assert.equal(left(), 75)
    },
    { 'X-Cost': '25' },
  )
})

test('a reader that closes the hold has the last word', async () => {
  const { polite, left } = metered({ costOf: () => 50 })
  await streaming(async (url, answers) => {
    const response = await polite(url)
    holdOf(response, 'spend')?.close(5)
    answers[0]?.end()
    await response.text()
    await nextTurn()
    assert.equal(left(), 95)
  })
})

test('a cost that the body says at its end is in time, and so is the last piece of a slow reader', async () => {
  const { limiter, all, left } = metered()
  const net = new FakeNet(() => new Response('{"usage":7}'))
  const polite = limitedFetch(net.fetch, { ...all, clock: net.clock })
  const response = await polite('http://a/')
  const { usage } = (await response.json()) as { usage: number }
  holdOf(response)?.close(usage)
  assert.equal(left(), 93)
  const slow = await polite('http://a/')
  for await (const piece of slow.body ?? []) {
    await nextTurn()
    assert.equal(holdOf(slow)?.add(piece.length), true)
  }
  await nextTurn()
  assert.equal(limiter.peek('model').remaining, 82)
})

test('however a request ends, nothing stays held', async () => {
  const ends: Readonly<Record<string, (response: Response, answer: ServerResponse | undefined) => Promise<unknown>>> = {
    cancelled: async (response) => response.body?.cancel(),
    'broken off': (response, answer) => {
      answer?.destroy()
      return assert.rejects(response.text())
    },
  }
  for (const [name, end] of Object.entries(ends)) {
    const { polite, left } = metered()
    await streaming(async (url, answers) => {
      const response = await polite(url)
      holdOf(response)?.add(3)
      await end(response, answers[0])
      await nextTurn()
      assert.equal(left(), 97, name)
    })
  }
  const unread = metered({ bodyTimeout: '5s' })
  await streaming(async (url) => {
    const response = await unread.polite(url)
    holdOf(response)?.add(3)
    unread.clock.advance(4_999)
    assert.equal(unread.left(), 60)
    unread.clock.advance(1)
    await nextTurn()
    assert.equal(unread.left(), 97, 'never read')
  })
  const failing = metered()
  const server = await LimitedServer.answering((_, response) => {
    assert.equal(failing.left(), 60, 'held before it is sent')
    response.destroy()
  })
  await assert.rejects(failing.polite(`${server.url}/`), TypeError)
  await server.stop()
  assert.equal(failing.left(), 100, 'failed')
})

for (const isShared of [false, true]) {
  test(`a request waits for room${isShared ? ' of a limiter that answers later' : ''}, and goes when another one closes`, async () => {
    const { all, limiter, left } = metered()
    const { policy } = limiter
    const later = {
      policy,
      wait: limiter.wait.bind(limiter),
      refund: limiter.refund.bind(limiter),
      penalize: limiter.penalize.bind(limiter),
      open: async (...args: Parameters<typeof limiter.open>) => limiter.open(...args),
    }
    const polite = limitedFetch(fetch, { ...all, limiter: isShared ? later : limiter, cost: { expect: 60 } })
    await streaming(async (url, answers) => {
      const first = await polite(url)
      const second = polite(url)
      await settled()
      assert.deepEqual([answers.length, left()], [1, 40])
      await first.body?.cancel()
      await (await second).body?.cancel()
      await nextTurn()
      assert.equal(left(), 100)
    })
    const impatient = limitedFetch(fetch, { ...all, maxWait: 0, cost: { expect: 60 } })
    limiter.take('model', 50)
    await assert.rejects(impatient('http://127.0.0.1:1/'), { code: 'WAIT_TOO_LONG' })
    assert.equal(left(), 50)
  })
}

test('each attempt has a hold of its own', async () => {
  const { limiter, left } = metered()
  const net = new FakeNet((_, number) => (number === 1 ? refusal(429, '1') : new Response('ok', { headers: { 'X-Cost': '7' } })))
  const polite = limitedFetch(net.fetch, {
    limiter,
    key: () => 'model',
    cost: 'metered',
    costOf: ({ header }) => Number(header('x-cost') ?? 0),
    clock: net.clock,
    jitter: 0,
  })
  const call = polite('http://a/')
  await settled()
  assert.equal(left(), 100, 'nothing is held between two attempts')
  await net.pass(1_000, 100)
  assert.equal(await (await call).text(), 'ok')
  await nextTurn()
  assert.equal(left(), 93)
})

test('without a hold the true cost corrects the token', async () => {
  const { limiter, left } = metered()
  const net = new FakeNet(() => new Response('ok', { headers: { 'X-Cost': '7' } }))
  const polite = limitedFetch(net.fetch, {
    limiter,
    key: () => 'model',
    costOf: ({ header }) => Number(header('x-cost')),
    clock: net.clock,
  })
  const response = await polite('http://a/')
  assert.deepEqual([left(), holdOf(response)], [93, undefined])
})

test('a request of undici holds, and costs what its head says', async () => {
  const { all, left } = metered({ costOf: ({ header }) => Number(header('x-cost')) })
  const answer = (_: unknown, response: ServerResponse): void => {
    assert.equal(left(), 60)
    response.writeHead(200, { 'X-Cost': '25' }).end('body')
  }
  await withLimitedAgent(answer, all, async ({ server, dispatcher }) => {
    const { body } = await request(server.url, { dispatcher })
    assert.equal(await body.text(), 'body')
    assert.equal(left(), 75)
  })
})

test('a cost that is none is refused, by its option and by what a response says', async () => {
  const { limiter, left } = metered()
  const { open: _, ...foreign } = {
    policy: limiter.policy,
    wait: limiter.wait,
    refund: limiter.refund,
    penalize: limiter.penalize,
    open: 0,
  }
  for (const [options, code, option] of [
    [{ limiter, cost: 5 }, 'COST_INVALID', 'cost'],
    [{ limiter, cost: 'meter' }, 'COST_INVALID', 'cost'],
    [{ limiter, cost: { most: 0 } }, 'COST_INVALID', 'most'],
    [{ limiter, cost: { mots: 5 } }, 'OPTION_UNKNOWN', 'mots'],
    [{ limiter: foreign, cost: 'metered' }, 'OPTION_INVALID', 'cost'],
    [{ policy: concurrency({ limit: 2, ttl: '1m' }), cost: 'metered' }, 'POLICY_INVALID', 'policy'],
    [{ cost: 'metered' }, 'OPTION_INVALID', 'cost'],
    [{ costOf: () => 1 }, 'OPTION_INVALID', 'costOf'],
    [{ limiter, costOf: 1 }, 'OPTION_INVALID', 'costOf'],
  ] as const) {
    assert.throws(() => limitedFetch(fetch, options as never), { name: 'PolicyError', code, option })
  }
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, { limiter, key: () => 'model', cost: { expect: 40 }, costOf: () => -1, clock: net.clock })
  await assert.rejects(polite('http://a/'), { code: 'COST_INVALID' })
  assert.equal(left(), 100)
})
