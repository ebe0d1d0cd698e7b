import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeNet, settled } from 'sluicegate-testkit/outbound/fake-net.js'
import { createLimiter } from '../create-limiter.js'
import type { Decision } from '../decision/decision.js'
import { gcra } from '../policy/single-policy.js'
import { limitedFetch } from './limited-fetch.js'
import { LimiterClient } from './limiter-client.js'

const EVEN = gcra({ limit: 10, window: '1s', burst: 1 })

test('keys, and policies of single keys, are chosen by the caller', async () => {
  const net = new FakeNet()
  const polite = limitedFetch(net.fetch, {
    clock: net.clock,
    key: ({ url, header }) => header('x-tenant') ?? url.hostname,
    policyFor: (key) => (key === 'free' ? undefined : gcra({ limit: key === 'slow' ? 1 : 10, window: '1s', burst: 1 })),
  })
  const calls = ['slow', 'slow', 'fast', 'fast', 'free', 'free'].map((tenant) => polite('http://a/', { headers: { 'X-Tenant': tenant } }))
  await net.pass(1000, 10)
  await Promise.all(calls)
  assert.deepEqual(net.times, [0, 0, 0, 0, 100, 1000])
  await assert.rejects(limitedFetch(net.fetch, { key: () => '' })('http://a/'), { code: 'KEY_INVALID' })
})

test('what does not go by HTTP, or nowhere, is left to fetch', async () => {
  const polite = limitedFetch(fetch, { policy: gcra({ limit: 1, window: '1h' }) })
  for (let i = 0; i < 3; i++) assert.equal(await (await polite('data:text/plain,hello')).text(), 'hello')
  await assert.rejects(polite('http://'), TypeError)
  assert.equal(polite.stats().sent, 0)
})

test('options that cannot be are refused where they are given', () => {
  const wrong = {
    attempts: 0,
    jitter: 2,
    maxWait: -1,
    maxPause: '5 minutes',
    bodyTimeout: 0,
    backoff: '2m',
    concurrency: 1.5,
    maxKeys: 0,
    key: 'host',
    onWait: 1,
    limiter: {},
    clock: {},
    what: 1,
  }
  for (const [name, value] of Object.entries(wrong)) {
    assert.throws(() => limitedFetch(fetch, { [name]: value } as never), { name: 'PolicyError', option: name })
  }
  assert.throws(() => limitedFetch(fetch, { policy: EVEN, limiter: createLimiter(EVEN) }), { option: 'limiter' })
  assert.throws(() => limitedFetch(fetch, { policy: { limit: 1 } as never }), { code: 'POLICY_INVALID' })
  assert.throws(() => limitedFetch({ concurrency: 1 } as never), { code: 'OPTION_INVALID', option: 'fetch' })
  assert.throws(() => limitedFetch(fetch, [] as never), { code: 'OPTION_INVALID', option: 'options' })
})

test('a fetch of any arguments can be limited, and takes a priority that its own types lack', async () => {
  const own = limitedFetch(async (url: string, init: { readonly retries: number }) => new Response(url + init.retries))
  assert.equal(await (await own('http://a/', { retries: 1 })).text(), 'http://a/1')
  assert.equal(await (await own('http://a/', { retries: 1, priority: 'high' })).text(), 'http://a/1')
})

test('a fleet is asked for several tokens at once where they pass, or come faster than its answers, and for one that takes long', async () => {
  const open: { verb: 'take' | 'wait'; answer: (decision: Decision) => void }[] = []
  const asked = (verb: 'take' | 'wait') => (): Promise<Decision> => new Promise((answer) => open.push({ verb, answer }))
  const limiter = {
    policy: gcra({ limit: 10, window: '1s', burst: 1 }),
    take: asked('take'),
    wait: asked('wait'),
    refund: () => undefined,
    penalize: () => undefined,
  }
  const door = new LimiterClient(limiter, 'a')
  let atMs = 0
  const asker = { nowMs: () => atMs, decided: () => undefined, failed: () => undefined }
  /** Answers all that is asked, and tells what is asked then for a hundred who wait. */
  const next = async (allowed: boolean, remaining: number, tookMs: number): Promise<string> => {
    atMs += tookMs
    const answers = { allowed, remaining, limit: 1, retryAfterMs: allowed ? 0 : 5, resetAfterMs: 0, policy: 'p', source: 'store' } as const
    for (const { answer } of open.splice(0)) answer(answers)
    await settled()
    door.ask(100, Number.POSITIVE_INFINITY, asker)
    return `${open.length} ${open[0]?.verb}`
  }
  assert.deepEqual(
    [
      await next(true, 1, 0),
      await next(true, 30, 10),
      await next(true, 64, 10),
      await next(false, 0, 10),
      await next(true, 0, 10),
      await next(true, 0, 10),
      await next(true, 0, 100),
      await next(true, 2, 10),
    ],
    ['8 take', '37 take', '64 take', '1 wait', '2 wait', '8 wait', '1 wait', '2 take'],
  )
})
