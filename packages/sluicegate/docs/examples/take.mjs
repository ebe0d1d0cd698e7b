// At most 3 requests at once, and 3 per hour in the long run.
import { createLimiter, tokenBucket } from 'sluicegate'

const limiter = createLimiter(tokenBucket({ limit: 3, window: '1h' }))

for (let i = 0; i < 5; i++) {
  const { allowed, remaining, retryAfterMs } = limiter.take('user:ada')
  if (allowed) console.log(`200 OK, ${remaining} left`)
  else console.log(`429 Too Many Requests, again in ${Math.ceil(retryAfterMs / 60_000)} minutes`)
}

// Prints:
//   200 OK, 2 left
//   200 OK, 1 left
//   200 OK, 0 left
//   429 Too Many Requests, again in 20 minutes
//   429 Too Many Requests, again in 20 minutes
