import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settled } from 'sluicegate-testkit/outbound/fake-net.js'
import type { Decision } from '../decision/decision.js'
import { gcra } from '../policy/single-policy.js'
import { LimiterClient } from './limiter-client.js'

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
