import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ManualClock, manualClock } from 'sluicegate'
import { readRateLimitFields, readRateLimitLists } from 'sluicegate-testkit/service/rate-limit-fields.js'
import { runService } from 'sluicegate-testkit/service/running-service.js'

// Each algorithm of the service, from its file to its answers over a socket.

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown>
}

interface Asked {
  readonly clock: ManualClock
  take(cost?: number, key?: unknown): Promise<Answer>
  /** The statuses of `n` takes in a row. */
  statuses(takes: number): Promise<number[]>
}

const DAY_MS = 86_400_000

/** A service whose policy `api` has these options, by default at 90 s past midnight UTC of 1 March 2026. */
async function ask(t: TestContext, options: string, startMs = Date.UTC(2026, 2, 1, 0, 1, 30)): Promise<Asked> {
  const clock = manualClock(startMs)
  const { url } = await runService(t, `listen: { port: 0 }\npolicies:\n  api: { ${options} }\n`, { clock })
  const take = async (cost = 1, key: unknown = 'alice'): Promise<Answer> => {
    const body = JSON.stringify({ policy: 'api', key, cost })
    const response = await fetch(`${url}/v1/take`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> }
  }
  const statuses = async (takes: number): Promise<number[]> => {
    const answers: number[] = []
    for (let i = 0; i < takes; i++) answers.push((await take()).status)
    return answers
  }
  return { clock, take, statuses }
}

test('token-bucket: a burst, then the rate', async (t) => {
  const { clock, statuses } = await ask(t, 'algorithm: token-bucket, limit: 1, window: 1s, burst: 2')
  assert.deepEqual(await statuses(3), [200, 200, 429])
  clock.advance(1_000)
  assert.deepEqual(await statuses(2), [200, 429])
})

test('gcra: evenly spaced', async (t) => {
  const { clock, statuses } = await ask(t, 'algorithm: gcra, limit: 4, window: 1s, burst: 1')
  assert.deepEqual(await statuses(2), [200, 429])
  clock.advance(250)
  assert.deepEqual(await statuses(2), [200, 429])
})

test('fixed-window: N per window, and all of them return when it ends', async (t) => {
  const { clock, take, statuses } = await ask(t, 'algorithm: fixed-window, limit: 2, window: 1m')
  assert.deepEqual(await statuses(2), [200, 200])
  const { status, headers, body } = await take()
  assert.deepEqual([status, body.retryAfterMs, headers.get('retry-after')], [429, 30_000, '30'])
  assert.deepEqual(readRateLimitFields(headers), { name: 'api', q: 2, w: 60, r: 0, t: 30 })
  clock.advance(30_000)
  assert.deepEqual(await statuses(3), [200, 200, 429])
})

test('fixed-window of the calendar: a quota that is full again at midnight of its time zone', async (t) => {
  const { clock, take, statuses } = await ask(t, 'algorithm: fixed-window, limit: 1, window: month, time-zone: Europe/Rome')
  assert.deepEqual(await statuses(1), [200])
  const { body, headers } = await take()
  // Rome is an hour ahead of UTC at the beginning of the month, two at its end.
  const untilAprilMs = Date.UTC(2026, 2, 31, 22) - clock.nowMs()
  assert.equal(body.retryAfterMs, untilAprilMs)
  assert.deepEqual(readRateLimitFields(headers), { name: 'api', q: 1, w: (31 * DAY_MS) / 1000, r: 0, t: untilAprilMs / 1000 })
  clock.advance(untilAprilMs)
  assert.deepEqual(await statuses(2), [200, 429])
})

test('sliding-window: spent tokens fade over the next window', async (t) => {
  const { clock, take, statuses } = await ask(t, 'algorithm: sliding-window, limit: 4, window: 1m')
  assert.deepEqual(await statuses(5), [200, 200, 200, 200, 429])
  // Half of the next window: half of the four are over.
  clock.advance(60_000)
  assert.deepEqual(await statuses(3), [200, 200, 429])
  assert.deepEqual(readRateLimitFields((await take()).headers), { name: 'api', q: 4, w: 60, r: 0, t: 15 })
})

test('sliding-log: each request expires by itself', async (t) => {
  const { clock, take, statuses } = await ask(t, 'algorithm: sliding-log, limit: 2, window: 10s')
  assert.deepEqual(await statuses(1), [200])
  clock.advance(9_000)
  assert.deepEqual(await statuses(1), [200])
  const { body, headers } = await take()
  assert.deepEqual([body.retryAfterMs, headers.get('retry-after')], [1_000, '1'])
  clock.advance(1_000)
  assert.deepEqual(await statuses(2), [200, 429])
})

const BOTH = 'all-of: [{ algorithm: gcra, limit: 1, window: 1s, burst: 2, name: rate }, { algorithm: sliding-log, limit: 3, window: 1m }]'

test('all-of: charged together or not at all, and the answer has each part and the binding one', async (t) => {
  const { clock, take, statuses } = await ask(t, BOTH)
  const { status, headers, body } = await take(2)
  const source = 'memory'
  const rate = { allowed: true, policy: 'rate', limit: 1, remaining: 0, retryAfterMs: 0, resetAfterMs: 2_000, source }
  const log = { allowed: true, policy: 'sliding-log-3-1m', limit: 3, remaining: 1, retryAfterMs: 0, resetAfterMs: 60_000, source }
  assert.deepEqual([status, body], [200, { ...rate, resetAfterMs: 60_000, parts: [rate, log] }])
  assert.deepEqual(readRateLimitLists(headers), [
    { name: 'rate', q: 2, w: 2, r: 0, t: 1 },
    { name: 'sliding-log-3-1m', q: 3, w: 60, r: 1, t: 20 },
  ])
  const byRate = await take()
  assert.deepEqual([byRate.status, byRate.body.policy, byRate.headers.get('retry-after')], [429, 'rate', '1'])
  clock.advance(2_000)
  assert.deepEqual(await statuses(1), [200], 'the denial was charged to none')
  const byLog = await take()
  assert.deepEqual([byLog.status, byLog.body.policy, byLog.headers.get('retry-after')], [429, 'sliding-log-3-1m', '58'])
})

test('all-of: a cost that one part can never pass is impossible, and the answer names the part', async (t) => {
  const { take } = await ask(t, BOTH)
  const { status, headers, body } = await take(3)
  assert.deepEqual([status, body.policy, body.retryAfterMs, body.impossible], [422, 'rate', null, true])
  const parts = body.parts as Record<string, unknown>[]
  assert.deepEqual(
    parts.map(({ allowed, retryAfterMs, impossible }) => [allowed, retryAfterMs, impossible]),
    [
      [false, null, true],
      [true, 0, undefined],
    ],
  )
  assert.equal(headers.has('retry-after'), false)
})

test('all-of: a key for each part, as for a user and a team', async (t) => {
  const part = 'algorithm: fixed-window, window: day'
  const { take } = await ask(t, `all-of: [{ ${part}, limit: 2, name: user }, { ${part}, limit: 3, name: team }]`)
  const binding = async (user: string): Promise<unknown[]> => {
    const { status, body } = await take(1, [user, 'blue'])
    return [status, body.policy]
  }
  assert.deepEqual(
    [await binding('ann'), await binding('ann'), await binding('ann')],
    [
      [200, 'user'],
      [200, 'user'],
      [429, 'user'],
    ],
  )
  assert.deepEqual(
    [await binding('bob'), await binding('bob')],
    [
      [200, 'team'],
      [429, 'team'],
    ],
  )
  assert.equal((await take(1, ['ann'])).body.code, 'KEY_INVALID')
})
