import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { rateBudget, type Spent, surelyOver } from 'sluicegate-testkit/history/excess.js'
import { createLimiter } from '../create-limiter.js'
import { gcra, type Policy, tokenBucket } from '../index.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

const FOR_MS = 700
/** On a machine that is busy with other things it goes on until enough has passed, for this long at most. */
const MOST_MS = 30_000
const WORKERS = 3

/** Another burst, another limit, both; and back. */
const CHANGES: readonly (readonly (readonly [limit: number, burst: number])[])[] = [
  [
    [400, 200],
    [400, 210],
  ],
  [
    [400, 200],
    [360, 200],
    [400, 200],
  ],
  [
    [400, 200],
    [300, 150],
  ],
]

for (const make of [tokenBucket, gcra]) {
  for (const change of CHANGES) {
    const [first] = change
    test(`I1: ${make.name}: a primary that goes over from ${change.join(' to ')} while its workers hold leases lets them pass no more than the largest`, async (t) => {
      const policies = change.map(([limit, burst]) => make({ limit, burst, window: '1s', name: 'api' }))
      const least = (first?.[1] ?? assert.fail()) / 2
      const { spent, lengthUs } = await saturated(policies, least)
      const [limit, burst] = [Math.max(...change.map(([each]) => each)), Math.max(...change.map(([, each]) => each))]
      const budgetOf = rateBudget({ limit, burst, windowMs: 1000 })
      t.diagnostic(`${spent.length} of ${Math.floor(budgetOf(lengthUs))}`)
      assert.equal(surelyOver(spent, budgetOf), undefined)
      assert.ok(spent.length > least, `${spent.length} passed`)
    })
  }
}

/** Workers ask all the time, while the policies follow one on another. */
async function saturated([first, ...others]: readonly Policy[], least: number) {
  using served = serveLimiter(first as Policy)
  const limiters = Array.from({ length: WORKERS }, () => {
    const pair = channelPair()
    served.serve(pair.worker)
    return createLimiter(first as Policy, { store: primary({ process: pair.parent }), outage: 'closed', timeout: 60_000 })
  })
  const spent: Spent[] = []
  const beginUs = machineUs()
  const changes = [...others]
  const changesMs = FOR_MS / (others.length + 1)
  const goesOn = (us: number): boolean => us < FOR_MS * 1000 || (spent.length <= least && us < MOST_MS * 1000)
  const caller = async (i: number): Promise<void> => {
    for (let us = beginUs; goesOn(us - beginUs); us = machineUs()) {
      if (us - beginUs > (others.length - changes.length + 1) * changesMs * 1000 && changes.length > 0)
        served.update(changes.shift() as Policy)
      for (let takes = 0; takes < 16; takes++) {
        const fromUs = machineUs()
        if ((await limiters[i]?.take('k'))?.allowed) spent.push({ fromUs, toUs: machineUs() })
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }
  await Promise.all(limiters.map((_, i) => caller(i)))
  for (const limiter of limiters) limiter.close()
  return { spent, lengthUs: machineUs() - beginUs }
}

function machineUs(): number {
  return Number(process.hrtime.bigint() / 1000n)
}
