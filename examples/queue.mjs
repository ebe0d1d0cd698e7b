// Runs jobs under a rate, two at once: by priority, with a timeout, and with a cost that is known only afterwards.
import { createLimiter, createQueue, QueueError, tokenBucket } from 'sluicegate'

const limiter = createLimiter(tokenBucket({ limit: 1000, window: '1s' }))
const queue = createQueue(limiter, { concurrency: 1, maxWaiting: 3 })
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

const first = queue.run('model', async () => pause(20))
const jobs = [
  queue.run('model', () => console.log('low priority'), { priority: -1 }),
  queue.run('model', () => console.log('high priority'), { priority: 1 }),
  queue.run('model', (job) => job.settle(40), { cost: 500 }),
]
await queue.run('model', () => {}).catch((error) => console.log(error instanceof QueueError, error.code))
await Promise.all([first, ...jobs])
await queue.run('model', () => pause(60_000), { timeout: '20ms' }).catch((error) => console.log(error.code))

const ask = queue.wrap(async (question) => question.length, { key: (question) => `question:${question}` })
console.log(await ask('why?'))

await queue.onIdle()
const { completed, failed, rejected } = queue.stats()
console.log(`${completed} done, ${failed} failed, ${rejected} refused`)
process.exit()

// Prints:
//   true QUEUE_FULL
//   high priority
//   low priority
//   TIMEOUT
//   4
//   5 done, 1 failed, 1 refused
