// Makes a key full: for support, or after a mistake.
import { createLimiter, fixedWindow } from 'sluicegate'

const limiter = createLimiter(fixedWindow({ limit: 2, window: 'month' }))

limiter.take('ada', 2)
limiter.block('ada', '1d')
console.log(limiter.take('ada').allowed)
console.log(limiter.reset('ada').remaining)
console.log(limiter.take('ada').allowed)

// Prints:
//   false
//   2
//   true
