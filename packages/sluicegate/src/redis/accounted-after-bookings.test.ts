import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { clientsForRun, SERVER_CLIENTS } from 'sluicegate-testkit/redis/redis-clients.js'
import { createLimiter } from '../create-limiter.js'
import { tokenBucket } from '../index.js'
import { redis as redisStore } from './redis.js'

const BURST = 50
/** Hardly anything flows back by itself. */
const POLICY = tokenBucket({ limit: BURST, window: '1d', burst: BURST, name: 'api' })
/** Of the whole burst, a tenth. */
const SHARE = 5
/** The charge after the outage is sent once: on a busy machine its answer must not come too late. */
const TIMEOUT_MS = 1_500

const redis = await ownRedis()
after(() => redis.stop())

// valkey-glide cannot recall a command: what was given up may be charged after what follows it.
for (const kind of clientsForRun(SERVER_CLIENTS.filter(({ library }) => library !== 'valkey-glide'))) {
  test(`with ${kind.name} late bookings are returned before the store is charged for the outage`, async () => {
    await using open = await kind.open([redis.server])
    const limiter = createLimiter(POLICY, { store: redisStore(open.client, { prefix: kind.name }), mode: 'exact', timeout: TIMEOUT_MS })
    await limiter.peek('k')
    redis.server.pause()
    const given = await Promise.all(Array.from({ length: BURST + 20 }, () => limiter.reserve('k', 1)))
    redis.server.resume()
    assert.ok(given.every(({ decision }) => decision.source === 'outage'))
    await until('the tokens of the outage are charged', () => limiter.stats().accountedTokens >= SHARE)
    const { remaining, source } = await limiter.peek('k')
    assert.equal(source, 'store')
    // Of the bookings whose time had come so much stays as could have flowed back meanwhile, less than a token.
    assert.ok(remaining >= BURST - SHARE - 1, `${remaining}`)
    limiter.close()
  })
}
