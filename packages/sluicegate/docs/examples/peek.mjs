// Reads without taking, for a page that shows how much is left.
import { createLimiter, slidingWindow } from 'sluicegate'

const limiter = createLimiter(slidingWindow({ limit: 100, window: '1h' }))
limiter.take('ada', 40)

const standing = limiter.peek('ada')
console.log(`${standing.remaining} of ${standing.limit} left`)
console.log(`20 more would ${limiter.peek('ada', 20).allowed ? 'pass' : 'have to wait'}`)
console.log(`80 more would ${limiter.peek('ada', 80).allowed ? 'pass' : 'have to wait'}`)
console.log(`still ${limiter.peek('ada').remaining} left`)

// Prints:
//   60 of 100 left
//   20 more would pass
//   80 more would have to wait
//   still 60 left
