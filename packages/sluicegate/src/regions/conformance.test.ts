import { after } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { equalLevels } from 'sluicegate-testkit/stores/equal-levels.js'
import { conformanceOverStore } from 'sluicegate-testkit/stores/store-conformance.js'
import { overRegion } from 'sluicegate-testkit/stores/store-limiters.js'
import { redisOver } from '../redis/redis.js'
import { casStore } from '../store/cas.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { region } from './region.js'

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

// What the region holds of a key does not change at once.
const without = ['more', 'unnamed'] as const
const homes = {
  Redis: (prefix: string) => redisOver(redis.runner, { prefix }),
  'a store': () => casStore(memoryStore()),
}
for (const [kind, at] of Object.entries(homes)) {
  const storeOf = () => region({ name: 'west', local: at('equal here'), home: at('equal home') })
  equalLevels(`a region of ${kind}`, storeOf, { options: { mode: 'exact' }, without })
}
