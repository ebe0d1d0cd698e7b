// At most two queries at the same time. A permit returns at the end of its block, or after its ttl if its holder died.
import { concurrency, createLimiter } from 'sluicegate'

const limiter = createLimiter(concurrency({ limit: 2, ttl: '30s' }))

let inFlight = 0
let most = 0
async function query(text) {
  const permit = await limiter.wait('database')
  // With TypeScript, or Node.js 24: `using permit = await limiter.wait('database')`, and no `try`.
  try {
    most = Math.max(most, ++inFlight)
    await new Promise((done) => setTimeout(done, 20))
    permit.heartbeat() // if it may take longer than the ttl
    return text.toUpperCase()
  } finally {
    inFlight--
    permit.release()
  }
}

console.log(await Promise.all(['a', 'b', 'c', 'd', 'e'].map(query)))
console.log(`at most ${most} at once, ${limiter.peek('database').remaining} free again`)

const { allowed } = limiter.take('database', 3) // more than the limit
console.log(allowed)

// Prints:
//   [ 'A', 'B', 'C', 'D', 'E' ]
//   at most 2 at once, 2 free again
//   false
