import { after, test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { compareLeases } from 'sluicegate-testkit/leases/compare-leases.js'
import { LEASED_ENCODINGS } from 'sluicegate-testkit/leases/lease-history.js'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'

// What the histories of leases run on is what the scripts do.

const SEQUENCES = shortOrLong(25, 100)

const redis = await ownRedis()
after(() => redis.stop())

for (const encoding of LEASED_ENCODINGS) {
  test(`the authority of the histories decides as the scripts of a ${encoding} do, also for several versions of a policy`, async () => {
    await compareLeases(redis.runner, encoding, [...seedsFrom(1, SEQUENCES)])
  })
}
