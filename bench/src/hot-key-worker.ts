import { parentPort, threadId, workerData } from 'node:worker_threads'
import { attachLimiter, type Decision, type LimiterHandle } from 'sluicegate'
import { BURST_TAKES, type HotKeyStart, type Stint, sharedMs } from './hot-key.js'
import { keyIndices, sink } from './key-row.js'
import { attachMutexTwin } from './mutex/mutex-twin.js'

interface Takes {
  take(): Decision
}

const { job, handle } = workerData as HotKeyStart
const shared = attached()
const burst = job.keys === 1 ? burstOfOne(taker('hot')) : burstOfMany()

await stint(job.repeatMs)
parentPort?.on('message', async () => parentPort?.postMessage(await stint(job.repeatMs)))
parentPort?.postMessage('ready')

function attached(): { take(key: string): Decision; key(key: string): Takes } {
  if (job.store === 'lock-free') return attachLimiter(handle as LimiterHandle)
  return attachMutexTwin(handle as Parameters<typeof attachMutexTwin>[0])
}

function taker(key: string): Takes {
  return job.boundKey ? shared.key(key) : { take: () => shared.take(key) }
}

/** Takes for so long, in bursts, with a turn of the event loop after each. */
function stint(ms: number): Promise<Stint> {
  return new Promise((resolve) => {
    const fromMs = sharedMs()
    let takes = 0
    let allowed = 0
    const turn = (): void => {
      allowed += burst()
      takes += BURST_TAKES
      const untilMs = sharedMs()
      if (untilMs - fromMs < ms) setImmediate(turn)
      else resolve({ fromMs, untilMs, takes, allowed })
    }
    setImmediate(turn)
  })
}

function burstOfOne(hot: Takes): () => number {
  return () => {
    let allowed = 0
    for (let i = 0; i < BURST_TAKES; i++) {
      const decision = hot.take()
      sink.last = decision
      if (decision.allowed) allowed++
    }
    return allowed
  }
}

/** Each thread goes through the keys in the same random order, from another place on. */
function burstOfMany(): () => number {
  const takers = Array.from({ length: job.keys }, (_, index) => taker(`user-${index}`))
  const order = keyIndices(job.keys)
  const mask = order.length - 1
  let position = Math.floor(order.length / Math.E) * threadId
  return () => {
    let allowed = 0
    for (let i = 0; i < BURST_TAKES; i++) {
      const decision = (takers[order[position++ & mask] as number] as Takes).take()
      sink.last = decision
      if (decision.allowed) allowed++
    }
    return allowed
  }
}
