import { setImmediate as nextTurn } from 'node:timers/promises'
import { primary } from '../../../sluicegate/dist/cluster/index.js'
import type { Policy, SharedOptions } from '../../../sluicegate/dist/index.js'
import { createLimiter, type Permit } from '../../../sluicegate/dist/index.js'

/** Commands of a worker process, run one after another. Only `stream` ends with the process. */
export type WorkerCommand =
  /** Takes until this number of consecutive denials. */
  | { readonly run: 'drain'; readonly key: string; readonly denials: number }
  /** Takes as fast as it can, for so long. */
  | { readonly run: 'saturate'; readonly key: string; readonly callers: number; readonly ms: number }
  /** This number of takes in one event-loop turn. */
  | { readonly run: 'burst'; readonly key: string; readonly takes: number; readonly cost?: number }
  /** Gives back what it took in its last burst: how many permits held something. */
  | { readonly run: 'release' }
  | { readonly run: 'policy' }
  | { readonly run: 'update'; readonly policy: Policy }
  | { readonly run: 'stats' }

/** What came of it. */
export interface WorkerReport {
  readonly ran: WorkerCommand['run']
  /** Microseconds on the machine's monotonic clock, which all processes share. */
  readonly admittedUs: readonly number[]
  readonly sources: Readonly<Record<string, number>>
  readonly denied: number
  readonly limit: number
  readonly storeCalls: number
  readonly released: number
}

/** What a worker process is started with. */
export interface WorkerStart {
  readonly policy: Policy
  readonly options?: Omit<SharedOptions, 'store' | 'clock'>
}

const { policy, options } = JSON.parse(process.argv[2] as string) as WorkerStart
const limiter = createLimiter(policy, { store: primary(), ...options })
let permits: Permit<'later'>[] = []

process.on('message', (message: unknown) => {
  if (typeof message === 'object' && message !== null && 'run' in message) void obey(message as WorkerCommand)
})

async function obey(command: WorkerCommand): Promise<void> {
  const admittedUs: number[] = []
  const sources: Record<string, number> = {}
  let denied = 0
  let inRow = 0
  let released = 0
  const take = async (key: string, cost = 1): Promise<unknown> => {
    const answer = limiter.take(key, cost)
    const decision = answer instanceof Promise ? await answer : answer
    sources[decision.source] = (sources[decision.source] ?? 0) + 1
    if (decision.allowed) for (let i = 0; i < cost; i++) admittedUs.push(nowUs())
    else denied++
    inRow = decision.allowed ? 0 : inRow + 1
    return decision
  }
  switch (command.run) {
    case 'drain':
      while (inRow < command.denials) {
        await take(command.key)
        if (inRow > 0) await nextTurn()
      }
      break
    case 'saturate': {
      const untilUs = nowUs() + command.ms * 1000
      const caller = async (): Promise<void> => {
        while (nowUs() < untilUs) {
          await take(command.key)
          if (inRow > 0) await nextTurn()
        }
      }
      await Promise.all(Array.from({ length: command.callers }, caller))
      break
    }
    case 'burst':
      permits = (await Promise.all(Array.from({ length: command.takes }, () => take(command.key, command.cost)))) as Permit<'later'>[]
      break
    case 'release':
      released = (await Promise.all(permits.map((permit) => permit.release()))).filter(Boolean).length
      break
    case 'update':
      limiter.update(command.policy)
      break
  }
  const { limit } = limiter.policy
  const { storeCalls } = limiter.stats()
  process.send?.({ ran: command.run, admittedUs, sources, denied, limit, storeCalls, released } satisfies WorkerReport)
}

function nowUs(): number {
  return Number(process.hrtime.bigint() / 1000n)
}
