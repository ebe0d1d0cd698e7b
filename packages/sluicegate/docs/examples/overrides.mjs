// Policies of single keys, set while the program runs. On Redis and node:cluster all processes share them.
import { createLimiter, tokenBucket } from 'sluicegate'

const limiter = createLimiter(tokenBucket({ limit: 10, window: '1m', name: 'all' }), { overrides: true })

limiter.overrides.set('acme', tokenBucket({ limit: 500, window: '1m', name: 'acme' }))
for (const tenant of ['acme', 'bob']) {
  const { policy, remaining } = limiter.take(tenant)
  console.log(tenant, policy, remaining)
}
console.log([...limiter.overrides.list().keys()], limiter.overrides.get('acme').limit)
console.log(limiter.overrides.delete('acme'), limiter.take('acme').policy)

// Prints:
//   acme acme 499
//   bob all 9
//   [ 'acme' ] 500
//   true all
