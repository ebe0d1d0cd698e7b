// A cost known afterwards: a failed response, or one from a slow query, costs more.
import { createLimiter, tokenBucket } from 'sluicegate'

const limiter = createLimiter(tokenBucket({ limit: 60, window: '1h', burst: 10 }))

limiter.take('crawler')
console.log(limiter.penalize('crawler', 5).remaining, 'left after a slow one')

// More than is left: the key goes into debt, down to ten bursts.
const { remaining, retryAfterMs } = limiter.penalize('crawler', 14)
console.log(remaining, 'left, again in', Math.ceil(retryAfterMs / 60_000), 'minutes')

// Prints:
//   4 left after a slow one
//   0 left, again in 11 minutes
