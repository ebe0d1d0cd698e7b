import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket, type WaitOptions } from '../../../sluicegate/dist/index.js'

/** A limiter whose clock need not move during a test. */
export interface ChangedSubject {
  readonly limiter: {
    take(key: string, cost?: number): Awaitable<Decision>
    peek(key: string, cost?: number): Awaitable<Decision>
    wait(key: string, options?: WaitOptions): Promise<Decision>
    reset(key: string): Awaitable<Decision>
    update(policy: Policy): void
  }
  /** Lets all that is on its way arrive. */
  settle(): Promise<void>
  stop(): Awaitable<void>
}

/** Long enough that no window ends, and nothing flows back, while a test runs; a run at its end sees the next one. */
const options = (limit: number, name: string) => ({ limit, window: '10d', name }) as const
const MAKERS = { tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog }

function policyOf(maker: keyof typeof MAKERS, limit: number, name: string): Policy {
  const own = options(limit, name)
  return maker === 'gcra' ? gcra({ ...own, burst: limit }) : MAKERS[maker](own)
}

/** That those who have booked ahead pass at once when a reset or an update makes room, under each algorithm. */
export function feltChanges(
  name: string,
  make: (policy: Policy) => Awaitable<ChangedSubject>,
  changes: readonly ('reset' | 'update')[] = ['reset', 'update'],
): void {
  for (const maker of Object.keys(MAKERS) as (keyof typeof MAKERS)[]) {
    for (const change of changes) {
      // A log keeps what is booked.
      if (maker === 'slidingLog' && change === 'update') continue
      test(`${name}, ${maker}: after ${change} those who have booked pass at once, in their order, and are charged`, async () => {
        const own = `${maker} ${change}`
        const { limiter, settle, stop } = await make(policyOf(maker, 10, own))
        const passed: string[] = []
        const wait = async (one: string): Promise<void> => {
          const { allowed } = await limiter.wait('k', { cost: 3 })
          passed.push(allowed ? one : `${one} denied`)
        }
        try {
          await limiter.take('k', 10)
          for (const one of ['a', 'b', 'c']) wait(one).catch(() => undefined)
          await settle()
          assert.deepEqual(passed, [])
          if (change === 'reset') await limiter.reset('k')
          else limiter.update(policyOf(maker, 40, own))
          await settle()
          assert.deepEqual(passed, ['a', 'b', 'c'])
          const { remaining } = await limiter.peek('k')
          assert.ok(remaining <= (change === 'reset' ? 1 : 21), `${remaining} are left`)
        } finally {
          await stop()
        }
      })
    }
  }
}
