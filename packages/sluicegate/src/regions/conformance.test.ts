import { after } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overRegion } from 'sluicegate-testkit/stores/store-limiters.js'

const redis = await ownRedis()
after(() => redis.stop())

conformanceOverStore('a region', overRegion(redis), {
  share: shortOrLong(0.002, 0.01),
  inShortRun: ['fixed window'],
  whole: ['gcra', 'all-of'],
  // It draws tokens from its home, of which it still holds some when the policy changes.
  without: ['updates'],
  isLeased: false,
  furthestBackMs: 300,
})
