// Two threads spend one budget: together exactly 1,000.
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { attachLimiter, createLimiter, tokenBucket } from 'sluicegate'

if (isMainThread) {
  const limiter = createLimiter(tokenBucket({ limit: 1_000, window: '24h' }))
  const workers = [1, 2].map(() => new Worker(new URL(import.meta.url), { workerData: limiter.handle() }))
  const counts = await Promise.all(workers.map((worker) => new Promise((done) => worker.once('message', done))))
  console.log(counts.reduce((sum, count) => sum + count))
} else {
  const limiter = attachLimiter(workerData)
  let passed = 0
  for (let i = 0; i < 1_000; i++) if (limiter.take('global').allowed) passed++
  parentPort.postMessage(passed)
}

// Prints:
//   1000
