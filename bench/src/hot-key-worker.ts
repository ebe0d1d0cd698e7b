import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, type Decision, type LimiterHandle } from 'sluicegate'
import { BURST_TAKES, type HotKeyStart, type Stint, sharedMs } from './hot-key.js'
import { attachMutexTwin, type MutexTwinHandle } from './mutex/mutex-twin.js'
import { sink } from './walk.js'

const { job, handle } = workerData as HotKeyStart
const shared = attached()
const hot = job.boundKey ? shared.key('hot') : { take: () => shared.take('hot') }

await stint(job.repeatMs)
parentPort?.on('message', async () => parentPort?.postMessage(await stint(job.repeatMs)))
parentPort?.postMessage('ready')

function attached(): { take(key: string): Decision; key(key: string): { take(): Decision } } {
  if (job.store === 'lock-free') return attachLimiter(handle as LimiterHandle)
  return attachMutexTwin(handle as MutexTwinHandle)
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

function burst(): number {
  let allowed = 0
  for (let i = 0; i < BURST_TAKES; i++) {
    const decision = hot.take()
    sink.last = decision
    if (decision.allowed) allowed++
  }
  return allowed
}
