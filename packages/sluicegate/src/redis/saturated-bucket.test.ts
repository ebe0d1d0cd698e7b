import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { IS_LONG_RUN, longTest, policyOf } from 'sluicegate-testkit'
import { leasedFleet } from 'sluicegate-testkit/leases/leased-fleet.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { type Allowance, allowanceOf, machineUs, saturated, serverClock } from 'sluicegate-testkit/redis/saturation.js'
import { createLimiter } from '../create-limiter.js'
import { redis as redisStore } from './index.js'

// The classic test of a rate limiter over a store: a bucket is saturated for a while, and what was let pass is counted. In real time, by the
// clock that decides: the server's where it is asked each time, the machine's where leased tokens are spent. What has to pass at least is
// worked out from the takes themselves, so that the bounds hold on a machine of any speed, and are a token or two apart on one at rest.

/** Half a token beyond 3 s, so that at the end none is just coming back. */
const FOR_MS = 3050
const LEASE_MS = 100
/** The longest pause of a process whose callers got fewer tokens than they waited for, and of one of several after requests in vain. */
const [PAUSE_MS, PAUSE_OF_SEVERAL_MS] = [75, 300]
const MINUTE_MS = 60_000
const MOST_RUNS = 3
const NARROW = 3
let runs = 0

const TEN = { algorithm: 'token-bucket', limit: 10, windowMs: 1000, burst: 10 } as const
const SLOW = { algorithm: 'token-bucket', limit: 7, windowMs: 20_000, burst: 5 } as const
const FAST = { algorithm: 'token-bucket', limit: 5000, windowMs: 1000, burst: 1000 } as const

const redis = await ownRedis()
after(() => redis.stop())

/** Again where the machine had so little time that the bounds say nothing: they hold each time, but a narrow pair is to be seen. */
async function assertWithin(t: TestContext, saturate: () => Promise<Allowance>): Promise<void> {
  for (let run = 1; run <= MOST_RUNS; run++) {
    const { admitted, least, most } = await saturate()
    t.diagnostic(`${admitted} of ${least} to ${most}`)
    assert.ok(admitted <= most, `${admitted} passed, and at most ${most} may`)
    assert.ok(admitted >= least, `${admitted} passed, and at least ${least} should`)
    if (most - least <= Math.max(NARROW, 0.05 * most)) break
  }
}

/** Saturated by callers in this process. */
async function allowance(spec: typeof TEN | typeof SLOW | typeof FAST, mode: 'exact' | 'leased', callers: number): Promise<Allowance> {
  const name = `run ${++runs}`
  using limiter = createLimiter(policyOf(spec, { name }), { store: redisStore(redis.client), mode, timeout: 60_000, outage: 'closed' })
  const nowUs = mode === 'exact' ? serverClock({ sendCommand: (command) => redis.send(...command) }) : machineUs
  const seen = await saturated({ limiter, callers, forMs: FOR_MS, nowUs })
  return mode === 'exact' ? allowanceOf(spec, [seen]) : allowanceOf(spec, [seen], LEASE_MS, PAUSE_MS)
}

/** How many callers saturate a key. */
const CALLERS = IS_LONG_RUN ? [1, 16] : [4]

describe('a burst of 10 at 10/s, saturated for 3 s', { concurrency: true }, () => {
  for (const callers of CALLERS) {
    test(`exact, by ${callers} callers: 40 pass, or 39 while a boundary is crossed, never 41, and not 10`, async (t) => {
      await assertWithin(t, () => allowance(TEN, 'exact', callers))
    })
    test(`leased, by ${callers} callers: a token fewer, which is what flows back in a lease, and what came in the last pause`, async (t) => {
      await assertWithin(t, () => allowance(TEN, 'leased', callers))
    })
  }
})

longTest('0.35 tokens a second are not lost to rounding: a burst of 5 and one more in 3 s', async (t) => {
  await assertWithin(t, () => allowance(SLOW, 'exact', 16))
})

longTest('5,000 tokens a second, exact: all of 16,000 in 3 s', async (t) => {
  await assertWithin(t, () => allowance(FAST, 'exact', 64))
})

longTest('5,000 tokens a second, leased: 99 % of all but what flows back in a lease', async (t) => {
  await assertWithin(t, async () => {
    const { least, ...rest } = await allowance(FAST, 'leased', 64)
    return { ...rest, least: Math.floor(0.99 * least) }
  })
})

for (const mode of ['exact', 'leased'] as const) {
  longTest(`a burst of 10 at 10/s, saturated for 3 s by 8 processes whose wall clocks differ by minutes, ${mode}`, async (t) => {
    await assertWithin(t, async () => {
      const reports = await eightProcesses(mode)
      const walls = reports.map((report) => report?.wallMs ?? Number.NaN).sort((a, b) => a - b)
      assert.ok(
        walls.every((ms, i) => i === 0 || ms - (walls[i - 1] as number) > 2 * MINUTE_MS),
        'their wall clocks agree',
      )
      const seen = reports.map((report) => report?.seen ?? [])
      return mode === 'exact' ? allowanceOf(TEN, seen) : allowanceOf(TEN, seen, LEASE_MS, PAUSE_OF_SEVERAL_MS)
    })
  })
}

async function eightProcesses(mode: 'exact' | 'leased') {
  await redis.send('FLUSHALL')
  const saturates = mode === 'exact' ? 'by the server' : 'by the machine'
  const jobs = Array.from({ length: 8 }, (_, i) => {
    const { url } = redis.server
    return { url, spec: TEN, mode, forMs: FOR_MS, wallClock: `${i < 4 ? '-' : '+'}${3 * i + 2}m`, saturates } as const
  })
  return Promise.all((await leasedFleet(jobs)).map(({ report }) => report))
}
