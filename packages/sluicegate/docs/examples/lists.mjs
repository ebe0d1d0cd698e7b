// Keys that always pass, and keys that never do.
import { createLimiter, tokenBucket } from 'sluicegate'

const banned = new Set()
const limiter = createLimiter(tokenBucket({ limit: 1, window: '1m' }), {
  allow: ['health-check'], // read once
  deny: (key) => banned.has(key), // evaluated at each take
})

console.log('health-check', limiter.take('health-check', 50).allowed)
console.log('scraper', limiter.take('scraper').allowed)
banned.add('scraper')
const { allowed, retryAfterMs } = limiter.take('scraper')
console.log('scraper', allowed, retryAfterMs)

// Prints:
//   health-check true
//   scraper true
//   scraper false Infinity
