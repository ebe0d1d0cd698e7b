// Plans, a deny list and an override over three processes of node:cluster. Without Redis.

import cluster from 'node:cluster'
import { createLimiter, fixedWindow } from 'sluicegate'
import { primary, serveLimiter } from 'sluicegate/cluster'

const free = fixedWindow({ limit: 100, window: '365d', name: 'free' })
const pro = fixedWindow({ limit: 300, window: '365d', name: 'pro' })

if (cluster.isPrimary) {
  // Long times, so that no token expires unspent on a busy machine. For limits per second leave `lease` and `timeout` out.
  const patient = { cluster, lease: '10s' }
  const served = serveLimiter(free, { ...patient, overrides: true })
  const servedPro = serveLimiter(pro, patient) // the primary serves each policy
  served.overrides.set('acme', fixedWindow({ limit: 500, window: '365d' }))
  const workers = [1, 2, 3].map(() => cluster.fork())
  const counted = (worker) => new Promise((done) => worker.on('message', (message) => message.passed && done(message.passed)))
  const all = await Promise.all(workers.map(counted))
  for (const key of ['bob', 'pro user', 'acme', 'scraper'])
    console.log(
      key,
      all.reduce((sum, passed) => sum + passed[key], 0),
    )
  served.close()
  servedPro.close()
} else {
  const limiter = createLimiter(free, {
    store: primary(),
    policyFor: (key) => (key.startsWith('pro ') ? pro : undefined),
    deny: ['scraper'],
    overrides: true,
    timeout: '20s',
  })
  const passed = { bob: 0, 'pro user': 0, acme: 0, scraper: 0 }
  for (const key of Object.keys(passed)) while ((await limiter.take(key)).allowed) passed[key]++
  limiter.close()
  process.send({ passed }, () => process.disconnect())
}

// Prints:
//   bob 100
//   pro user 300
//   acme 500
//   scraper 0
