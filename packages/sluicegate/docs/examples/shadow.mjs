// A new limit on trial: every request passes, and `wouldDeny` marks those that would be denied.
import { createLimiter, tokenBucket } from 'sluicegate'

const limiter = createLimiter(tokenBucket({ limit: 2, window: '1m' }), { shadow: true, hotKeys: 10 })

for (let i = 0; i < 4; i++) {
  const { allowed, wouldDeny } = limiter.take('busy')
  console.log(allowed, wouldDeny ? 'would be denied' : 'fine')
}
limiter.take('quiet')

for (const { key, count } of limiter.hotKeys().denials) console.log(`${key} would be denied ${count} times`)

// Prints:
//   true fine
//   true fine
//   true would be denied
//   true would be denied
//   busy would be denied 2 times
