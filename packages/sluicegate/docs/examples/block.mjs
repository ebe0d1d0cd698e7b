// Bans a key for a time, and leaves its tokens alone.
import { createLimiter, tokenBucket } from 'sluicegate'

const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s' }))

limiter.block('mallory', '1h')
limiter.block('mallory', '5m') // the longest wins
const { allowed, remaining, retryAfterMs } = limiter.take('mallory')
console.log(allowed, `again in ${Math.ceil(retryAfterMs / 60_000)} minutes, with ${remaining} tokens`)

limiter.block('mallory', 0) // lifts it
console.log(limiter.take('mallory').allowed)

// Prints:
//   false again in 60 minutes, with 10 tokens
//   true
