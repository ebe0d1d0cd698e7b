import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type RateLimiterMemory, RateLimiterQueue, RateLimiterQueueError } from 'sluicegate/rate-limiter-flexible'
import { requireRival } from '../rivals.js'
import { type FlexibleLimiter, FlexibleTwins } from './flexible-twins.js'

interface Queue {
  removeTokens(tokens: number, key?: string, expiresUnixAt?: number): Promise<number>
  getTokensRemaining(key?: string): Promise<number>
}

const theirs = requireRival('rate-limiter-flexible') as {
  readonly RateLimiterQueue: new (limiter: FlexibleLimiter, options?: object) => Queue
}

function twins(t: TestContext, points: number): FlexibleTwins {
  const both = new FlexibleTwins({ points, duration: 10 })
  t.after(() => both.stop())
  return both
}

/** What a call came to, as text that both write alike. */
async function outcomeOf(call: Promise<number>): Promise<string> {
  return call.then(String, (reason) => (reason instanceof Error ? 'error' : 'denied'))
}

test('a queue lets as many wait as its options say, and rejects those above with an error', async (t) => {
  const both = twins(t, 2)
  const queues: readonly Queue[] = [
    new theirs.RateLimiterQueue(both.theirs, { maxQueueSize: 2 }),
    new RateLimiterQueue(both.ours as never, { maxQueueSize: 2 }),
  ]
  const said: string[][] = [[], []]
  const calls = queues.flatMap((queue, side) =>
    [1, 1, 1, 1, 1, 3].map(async (tokens, i) => {
      said[side]?.push(`${i}: ${await outcomeOf(queue.removeTokens(tokens))}`)
    }),
  )
  const settled = Promise.all(calls)
  for (let i = 0; i < 20; i++) await new Promise(setImmediate)
  assert.deepEqual([...(said[1] ?? [])].sort(), ['0: 1', '1: 0', '4: error', '5: error'])
  assert.deepEqual([...(said[0] ?? [])].sort(), [...(said[1] ?? [])].sort())
  for (let i = 0; i < 4; i++) {
    both.advance(10_000)
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate)
  }
  await settled
  // A difference: what is left to one who has waited does not count what those behind it wait for.
  const who = (side: string[] = []): string[] => side.map((text) => text.replace(/(?<=^[23]: )\d/, 'n')).sort()
  assert.deepEqual(who(said[0]), who(said[1]))
})

test('a queue without a size lets as many wait as the limiter does, and says that it was that', async (t) => {
  const both = twins(t, 1)
  const queue = new RateLimiterQueue(both.ours as never)
  await queue.removeTokens(1)
  const waiting = Array.from({ length: 10_000 }, () => queue.removeTokens(1).catch((error: Error) => error.message))
  await assert.rejects(queue.removeTokens(1), { name: 'RateLimiterQueueError', message: /raise maxWaiters/ })
  ;(both.ours as RateLimiterMemory).close()
  assert.match((await Promise.all(waiting)).at(-1) as string, /closed/)
})

test('what a queue cannot give by its time is rejected with an error', async (t) => {
  const both = twins(t, 1)
  const queue = new RateLimiterQueue(both.ours as never)
  await queue.removeTokens(1, 'ada')
  assert.equal(await queue.getTokensRemaining('ada'), 0)
  assert.equal(await queue.getTokensRemaining('bob'), 1)
  await assert.rejects(queue.removeTokens(1, 'ada', Date.now() / 1000 + 5), RateLimiterQueueError)
})
