import assert from 'node:assert/strict'
import { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@redis/client'
import { everyNth, seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { versionedOracleFor } from 'sluicegate-testkit/oracle/versioned-oracle.js'
import { Random } from 'sluicegate-testkit/random.js'
import type { Account } from 'sluicegate-testkit/receipts/settled-history.js'
import {
  namedSpec,
  playSettled,
  SETTLED_ALGORITHMS,
  type SettledAlgorithm,
  type SettledResult,
  STEPS,
  settledPlan,
} from 'sluicegate-testkit/receipts/settled-history.js'
import { type AnyLimiter, type SettlingFault, settlingLimiter } from 'sluicegate-testkit/receipts/settling-limiter.js'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import type { CommandRunner } from '../../dist/redis/command-runner.js'
import { RedisKeys } from '../../dist/redis/redis-keys.js'
import { RedisScripts } from '../../dist/redis/redis-scripts.js'
import { manualClock } from '../../dist/time/clock.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, gcra, type Policy, type SharedLimiter, slidingWindow, tokenBucket } from '../index.js'
import type { RunningJob } from '../queue/queue-options.js'
import { redis as redisStore } from './index.js'
import { scriptedStore } from './redis.js'

/** Longer than any answer of a running server takes. */
const TIMEOUT_MS = 60_000

/** The history of a seed over the scripts of a real server, at given times; leased it has no update. */
async function settledOnStore(
  runner: CommandRunner,
  prefix: string,
  seed: number,
  algorithm: SettledAlgorithm,
  mode: 'exact' | 'leased',
  fault?: SettlingFault,
): Promise<SettledResult> {
  const random = new Random(seed)
  const plan = settledPlan(random, algorithm)
  const clock = manualClock(plan.startMs)
  const time = new GivenTime(runner)
  const options = { mode, outage: 'closed', timeout: TIMEOUT_MS } as const
  const limiterOf = (account: Account) =>
    createLimiter(namedSpec(plan.specs[account], account), {
      store: scriptedStore(new RedisScripts(time, new RedisKeys(prefix))),
      ...options,
      clock,
    })
  const limiters = { own: limiterOf('own'), other: limiterOf('other') }
  let account: Account = 'own'
  const set = (ms: number): void => {
    time.nowUs = Math.round(ms * 1000)
    clock.set(ms)
  }
  set(plan.startMs)
  const now = (): AnyLimiter => limiters[account]
  const flush = async (): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      await new Promise(setImmediate)
      // Answered after all that was sent before it.
      await runner.send('k', ['EXISTS', 'k'])
    }
  }
  const subject = {
    limiter: settlingLimiter(now, fault),
    clock,
    set,
    flush,
    choose: (next: Account): void => {
      account = next
    },
    update: (spec: Parameters<typeof namedSpec>[0]): void => limiters.own.update(namedSpec(spec, 'own')),
    ...(mode === 'exact' && { oracleOf: versionedOracleFor }),
  }
  try {
    const updates = mode === 'exact' ? plan.updates : []
    return await playSettled(random, subject, { ...plan, updates, waits: false }, random.integer(STEPS.least, STEPS.most))
  } finally {
    limiters.own.close()
    limiters.other.close()
  }
}

// Jobs over a real server that are settled late.

const HISTORIES = shortOrLong(4, 10)
const redis = await ownRedis()
const client = createClient({ url: redis.server.url })
await client.connect()
after(async () => {
  client.destroy()
  await redis.stop()
})

async function held(limiter: SharedLimiter, cost: number): Promise<RunningJob> {
  return new Promise((started, refused) => {
    limiter.run('k', (job) => new Promise<void>(() => started(job)), { cost }).catch(refused)
  })
}

async function takeAll(limiter: SharedLimiter): Promise<number> {
  let taken = 0
  while ((await limiter.take('k')).allowed) taken++
  return taken
}

for (const [i, mode] of (['exact', 'leased'] as const).entries()) {
  for (const [j, make] of [tokenBucket, gcra].entries()) {
    everyNth(i + j, 2)(`${mode} ${make.name}: jobs that are settled late return nothing of what has refilled`, async () => {
      const policy = make({ limit: 1_000, window: '1s', burst: 200, name: `late ${mode} ${make.name}` })
      using limiter = createLimiter(policy, { store: redisStore(client), mode, timeout: 10_000 })
      const under: RunningJob[] = []
      for (let i = 0; i < 5; i++) {
        under.push(await held(limiter, 80))
        await sleep(220)
      }
      const sinceMs = performance.now()
      let passed = await takeAll(limiter)
      for (const job of under) {
        await job.settle(0)
        passed += await takeAll(limiter)
      }
      const most = 200 + (performance.now() - sinceMs) + 1
      assert.ok(passed <= most, `${passed} of ${most}`)
    })
  }

  for (const [j, make] of [fixedWindow, slidingWindow].entries()) {
    everyNth(i + j, 2)(
      `${mode} ${make.name}: what a job does not use comes back while its window lasts, once, and not after an update`,
      async () => {
        const policyOf = (limit: number): Policy => make({ limit, window: '1d', name: `late ${mode} ${make.name}` })
        using limiter = createLimiter(policyOf(100), { store: redisStore(client), mode, timeout: 10_000 })
        const job = await held(limiter, 90)
        await Promise.all([job.settle(0), job.settle(0)])
        await limiter.peek('k')
        assert.ok((await takeAll(limiter)) >= 90)
        await limiter.reset('k')
        const late = await held(limiter, 100)
        limiter.update(policyOf(1))
        await limiter.take('k')
        limiter.update(policyOf(100))
        const passed = await takeAll(limiter)
        await late.settle(0)
        assert.equal(await takeAll(limiter), 0, `after ${passed}`)
      },
    )
  }

  for (const [j, algorithm] of SETTLED_ALGORITHMS.entries()) {
    everyNth(i + j, 2)(
      `${mode} ${algorithm}: in random histories no take passes that would not if only what was settled had been charged`,
      async () => {
        const results = await Promise.all(
          Array.from(seedsFrom(1, HISTORIES), (seed) =>
            settledOnStore(redis.runner, `${mode} ${algorithm} ${seed}`, seed, algorithm, mode),
          ),
        )
        assert.deepEqual(
          results.flatMap(({ excess }, i) => (excess === undefined ? [] : [`seed ${i + 1}: ${excess}`])),
          [],
        )
      },
    )
  }
}
