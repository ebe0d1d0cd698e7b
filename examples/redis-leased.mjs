// Three processes spend one budget in Redis: together exactly 1,000, with far fewer calls than that, because tokens are leased ahead.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createClient } from '@redis/client'
import { createLimiter, fixedWindow } from 'sluicegate'
import { redis } from 'sluicegate/redis'

const client = createClient({ url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' })
client.on('error', (error) => console.error(error.message))
await client.connect()
const policy = fixedWindow({ limit: 1_000, window: '365d', name: 'global' })
// Long times, so that no token expires unspent on a busy machine. For limits per second leave `lease` and `timeout` out.
const limiter = createLimiter(policy, { store: redis(client), lease: '3s', timeout: '6s' })

if (process.send === undefined) {
  await limiter.reset('global')
  const workers = [1, 2, 3].map(() => fork(fileURLToPath(import.meta.url)))
  const reports = await Promise.all(workers.map((worker) => once(worker, 'message')))
  const [passed, calls] = [0, 1].map((i) => reports.reduce((sum, [report]) => sum + report[i], 0))
  console.log(`${passed} passed, with ${calls < passed / 4 ? 'far fewer' : calls} calls to Redis`)
  await limiter.reset('global')
} else {
  let passed = 0
  while ((await limiter.take('global')).allowed) passed++
  process.send([passed, limiter.stats().storeCalls], () => process.disconnect())
}
await client.close()

// Prints:
//   1000 passed, with far fewer calls to Redis
