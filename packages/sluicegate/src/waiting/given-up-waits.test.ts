import { shortOrLong } from 'sluicegate-testkit'
import { givenUpWaits } from 'sluicegate-testkit/suites/given-up-waits.js'
import { turns } from 'sluicegate-testkit/turns.js'
import { attachLimiter, createLimiter, manualClock } from '../index.js'

givenUpWaits(
  'memory',
  (policy) => {
    const clock = manualClock(1_789_000_003_000)
    const limiter = createLimiter(policy, { clock, maxKeys: 20 })
    return {
      limiter,
      witness: attachLimiter(limiter.handle(), { clock }),
      settle: turns,
      advance: async (ms) => {
        clock.advance(ms)
        await turns()
      },
      stop: () => limiter.close(),
    }
  },
  shortOrLong(500, 3_000),
)
