import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { createClusterLimiter, serveLimiter } from '../../cluster/index.js'
import { allOf, createLimiter, fixedWindow, gcra, manualClock, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import { RateLimiterMemory, RateLimiterRes, RateLimiterSluicegate, RLWrapperBlackAndWhite } from './index.js'

const clock = manualClock(86_400_000)
const day = { limit: 5, window: '1d' } as const

test('a decision about a key in debt has spent, with any policy, and no other has', () => {
  const policies = [fixedWindow(day), slidingWindow(day), slidingLog(day), tokenBucket(day), gcra({ ...day, burst: 5 })]
  for (const policy of [...policies, allOf([fixedWindow(day)])]) {
    const limiter = createLimiter(policy, { clock })
    for (const state of [limiter.take('ada', 5), limiter.take('ada'), limiter.peek('ada')]) assert.equal('spent' in state, false)
    assert.equal(limiter.penalize('ada', 7).spent, 12, policy.name)
    assert.equal(limiter.peek('ada').spent, 12)
    assert.equal(limiter.take('ada').spent, 12)
    assert.equal(limiter.refund('ada', 7).spent, undefined)
    assert.equal(limiter.penalize('ada', 1_000).spent, 55, 'ten bursts of debt at most')
  }
})

test('after penalties of a worker consumedPoints is above all points', async (t) => {
  const { worker, parent } = channelPair()
  const policy = fixedWindow({ ...day, name: 'marks' })
  const served = serveLimiter(policy)
  served.serve(worker)
  const within = createClusterLimiter(policy, { process: parent, timeoutMs: 30_000 })
  t.after(() => {
    within.close()
    served.close()
  })
  const limiter = new RateLimiterSluicegate({ limiter: within })
  assert.deepEqual([(await limiter.penalty('ada', 5)).consumedPoints, (await limiter.penalty('ada', 7)).consumedPoints], [5, 12])
  assert.equal((await limiter.reward('ada', 4)).consumedPoints, 8)
})

test('a denial of a key in debt counts from what is consumed', async () => {
  const limiter = new RateLimiterMemory({ points: 5, duration: 86_400, clock })
  await limiter.penalty('ada', 12)
  const reason: unknown = await limiter.consume('ada', 2).catch((denied: unknown) => denied)
  assert.deepEqual(reason, new RateLimiterRes(0, 86_400_000, 14, false))
  assert.equal((await limiter.get('ada'))?.consumedPoints, 12)
})

test('options of lists that cannot be read are refused', () => {
  const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
  const cases: readonly [object, string][] = [
    [{}, 'limiter'],
    [{ limiter: {} }, 'limiter'],
    [{ limiter, whiteList: 'ada' }, 'whiteList'],
    [{ limiter, blackList: new Set(['ada']) }, 'blackList'],
    [{ limiter, isWhiteListed: true }, 'isWhiteListed'],
    [{ limiter, isBlackListed: ['ada'] }, 'isBlackListed'],
    [{ limiter, greyList: [] }, 'greyList'],
  ]
  for (const [options, option] of cases) assert.throws(() => new RLWrapperBlackAndWhite(options as never), { name: 'PolicyError', option })
})

test('an asynchronous list lets no key pass', async () => {
  const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
  for (const option of ['isWhiteListed', 'isBlackListed']) {
    const wrapped = new RLWrapperBlackAndWhite({ limiter, [option]: async () => false } as never)
    await assert.rejects(wrapped.consume('ada'), { name: 'PolicyError', option })
  }
})
