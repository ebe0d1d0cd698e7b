// One budget for several processes, held by Redis: each decision is one call. Two limiters represent two processes.
import { createClient } from '@redis/client'
import { createLimiter, tokenBucket } from 'sluicegate'
import { redis } from 'sluicegate/redis'

const client = createClient({ url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' })
client.on('error', (error) => console.error(error.message))
await client.connect()
const policy = tokenBucket({ limit: 4, window: '1h', name: 'exports' })
// A long timeout, so that a busy machine prints the same; leave `timeout` out.
const options = { store: redis(client), mode: 'exact', timeout: '20s' }
const here = createLimiter(policy, options)
const there = createLimiter(policy, options)

await here.reset('ada')
for (const limiter of [here, there, here, there, here]) {
  const { allowed, remaining, retryAfterMs } = await limiter.take('ada')
  console.log(allowed ? `passed, ${remaining} left` : `denied, try again in ${Math.ceil(retryAfterMs / 60_000)} minutes`)
}
await here.reset('ada')
await client.close()

// Prints:
//   passed, 3 left
//   passed, 2 left
//   passed, 1 left
//   passed, 0 left
//   denied, try again in 15 minutes
