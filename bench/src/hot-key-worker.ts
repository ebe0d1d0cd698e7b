import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, type LimiterHandle } from 'sluicegate'
import { attachMutexTwin } from '../../packages/sluicegate/dist/mutex-twin.js'
import { BURST_TAKES, type HotKeyStart, type Stint, sharedMs } from './hot-key.js'
import { sink } from './walk.js'

interface Takes {
  take(): { readonly allowed: boolean }
}

const { job, handle } = workerData as HotKeyStart
const taker = job.store === 'mutex' ? mutexTaker() : lockFreeTaker()

await stint(job.repeatMs)
parentPort?.on('message', async () => parentPort?.postMessage(await stint(job.repeatMs)))
parentPort?.postMessage('ready')

function lockFreeTaker(): Takes {
  const limiter = attachLimiter(handle as LimiterHandle)
  return job.boundKey ? limiter.key('hot') : { take: () => limiter.take('hot') }
}

function mutexTaker(): Takes {
  const twin = attachMutexTwin(handle as Parameters<typeof attachMutexTwin>[0])
  return job.boundKey ? twin.key('hot') : { take: () => twin.take('hot') }
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
    const decision = taker.take()
    sink.last = decision
    if (decision.allowed) allowed++
  }
  return allowed
}
