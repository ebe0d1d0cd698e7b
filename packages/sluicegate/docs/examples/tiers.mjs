// A different policy for some keys.
import { createLimiter, tokenBucket } from 'sluicegate'

const free = tokenBucket({ limit: 10, window: '1m', name: 'free' })
const pro = tokenBucket({ limit: 1_000, window: '1m', name: 'pro' })
const plans = new Map([['acme', pro]])

const limiter = createLimiter(free, { policyFor: (tenant) => plans.get(tenant), policies: [pro] })

for (const tenant of ['acme', 'bob']) {
  const { policy, remaining } = limiter.take(tenant)
  console.log(tenant, policy, remaining)
}
plans.set('bob', pro) // takes effect at the next call
console.log('bob', limiter.take('bob').policy)

// Prints:
//   acme pro 999
//   bob free 9
//   bob pro
