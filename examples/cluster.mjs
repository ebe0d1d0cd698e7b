// Three processes of node:cluster spend one budget: together exactly 1,000. Without Redis.

import cluster from 'node:cluster'
import { createLimiter, fixedWindow } from 'sluicegate'
import { primary, serveLimiter } from 'sluicegate/cluster'

const policy = fixedWindow({ limit: 1_000, window: '365d', name: 'global' })

if (cluster.isPrimary) {
  // Long times, so that no token expires unspent on a busy machine. For limits per second leave `lease` and `timeout` out.
  const served = serveLimiter(policy, { cluster, lease: '10s' })
  const workers = [1, 2, 3].map(() => cluster.fork())
  const counted = (worker) => new Promise((done) => worker.on('message', (message) => typeof message === 'number' && done(message)))
  const counts = await Promise.all(workers.map(counted))
  console.log(counts.reduce((sum, count) => sum + count))
  served.close()
} else {
  const limiter = createLimiter(policy, { store: primary(), timeout: '20s' })
  let passed = 0
  while ((await limiter.take('global')).allowed) passed++
  limiter.close()
  process.send(passed, () => process.disconnect())
}

// Prints:
//   1000
