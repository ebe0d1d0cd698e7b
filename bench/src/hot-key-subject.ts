// A process whose worker threads all take from one key, or from the same keys. Speaks the same lines as `subject.ts`.

import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { coarseClock, createLimiter, preciseClock, tokenBucket } from 'sluicegate'
import { sum } from 'sluicegate-testkit/samples.js'
import type { HotKeyJob, HotKeyStart, Stint } from './hot-key.js'
import { ALLOW, type Repeat } from './job.js'
import { answerRuns } from './line-process.js'
import { createMutexTwin } from './mutex/mutex-twin.js'

const job = JSON.parse(process.argv[2] ?? '') as HotKeyJob
const create = job.store === 'mutex' ? createMutexTwin : createLimiter
const clock = job.clock === 'coarse' ? coarseClock() : preciseClock()
const start: HotKeyStart = { job, handle: create(tokenBucket(ALLOW), { maxKeys: Math.max(job.keys, 1_000), clock }).handle() }

const workers = Array.from(
  { length: job.workers },
  () => new Worker(new URL('./hot-key-worker.js', import.meta.url), { workerData: start }),
)
await Promise.all(workers.map(nextMessage))
await answerRuns(repeat)

/** Wall time from the first worker's start to the last one's end, over the takes of all of them. */
async function repeat(): Promise<Repeat> {
  const answers = workers.map(nextMessage)
  for (const worker of workers) worker.postMessage('run')
  const stints = (await Promise.all(answers)) as Stint[]
  const wallMs = Math.max(...stints.map(({ untilMs }) => untilMs)) - Math.min(...stints.map(({ fromMs }) => fromMs))
  const takes = sum(stints.map((stint) => stint.takes))
  const ns = (wallMs * 1e6) / takes
  return { ns, grossNs: ns, takes, allowed: sum(stints.map((stint) => stint.allowed)) }
}

async function nextMessage(worker: Worker): Promise<unknown> {
  const [message] = await once(worker, 'message')
  return message
}
