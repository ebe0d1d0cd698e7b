// A new limit while the program runs. What was spent stays spent.
import { createLimiter, slidingLog } from 'sluicegate'

const limiter = createLimiter(slidingLog({ limit: 3, window: '1h' }))
for (let i = 0; i < 3; i++) limiter.take('ada')
console.log(limiter.peek('ada').remaining)

limiter.update(slidingLog({ limit: 5, window: '1h' }))
console.log(limiter.peek('ada').remaining, 'of', limiter.policy.limit)

limiter.update(slidingLog({ limit: 2, window: '1h' }))
console.log(limiter.take('ada').allowed, limiter.take('grace').allowed)

// Prints:
//   0
//   2 of 5
//   false true
