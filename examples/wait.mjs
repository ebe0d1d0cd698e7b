// Calls a service that allows one request every 100 ms: jobs wait in the order of arrival.
import { createLimiter, gcra } from 'sluicegate'

const limiter = createLimiter(gcra({ limit: 10, window: '1s', burst: 1 }))

const startedMs = performance.now()
async function job(number) {
  const { allowed } = await limiter.wait('service', { maxWait: '320ms' })
  if (!allowed) return console.log(`job ${number} would have to wait for longer than 320 ms`)
  const isEarly = performance.now() - startedMs < 100 * (number - 1) - 1
  console.log(`job ${number} starts`, isEarly ? 'too early' : 'in time')
}
await Promise.all([1, 2, 3, 4, 5].map(job))

// A wait ends when its signal aborts, and its booking is returned.
const client = new AbortController()
const waiting = limiter.wait('service', { cost: 1, signal: client.signal })
client.abort(new Error('the client has gone'))
await waiting.catch((reason) => console.log(reason.message))

// Prints:
//   job 1 starts in time
//   job 5 would have to wait for longer than 320 ms
//   job 2 starts in time
//   job 3 starts in time
//   job 4 starts in time
//   the client has gone
