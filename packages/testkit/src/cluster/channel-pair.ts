import { EventEmitter } from 'node:events'
import { after, before } from 'node:test'
import type { ParentChannel, WorkerProcess } from '../../../sluicegate/dist/cluster/channel.js'
import type { ServableLimiter } from '../../../sluicegate/dist/cluster/index.js'
import { primary } from '../../../sluicegate/dist/cluster/primary.js'
import { type ServeOptions, serveLimiter } from '../../../sluicegate/dist/cluster/serve-limiter.js'
import type { SharedOptions } from '../../../sluicegate/dist/index.js'
import { createLimiter, type ManualClock, manualClock, type Policy } from '../../../sluicegate/dist/index.js'

const MS_OF_A_TURN = 0.25

/** One end of a channel within this process: what is sent arrives at the other end in a later turn, as a copy. */
class End extends EventEmitter {
  readonly sent: unknown[] = []
  connected = true
  /** What is sent from here is lost. */
  isCut = false
  other: End | undefined

  send(message: object, callback?: (error: Error | null) => void): boolean {
    if (!this.connected) {
      setImmediate(() => callback?.(new Error('closed')))
      return false
    }
    this.sent.push(message)
    const text = JSON.stringify(message)
    setImmediate(() => {
      if (this.connected && !this.isCut) this.other?.emit('message', JSON.parse(text))
      callback?.(null)
    })
    return true
  }
}

/** A worker without a process: what its primary has of it, and what it has of its primary. */
export interface ChannelPair {
  readonly worker: WorkerProcess & { emit(event: 'message', message: unknown): boolean }
  readonly parent: ParentChannel & { emit(event: 'message', message: unknown): boolean }
  /** What either end has sent. */
  readonly toPrimary: readonly unknown[]
  readonly toWorker: readonly unknown[]
  /** What the worker sends is lost, or is not any more. */
  cut(isCut: boolean): void
  /** The worker's end closes; `die`: and its process is gone. */
  disconnect(): void
  die(): void
}

export function channelPair(): ChannelPair {
  const worker = new End()
  const parent = new End()
  worker.other = parent
  parent.other = worker
  const disconnect = (): void => {
    if (!parent.connected) return
    parent.connected = worker.connected = false
    parent.emit('disconnect')
    worker.emit('disconnect')
  }
  return {
    worker,
    parent,
    toPrimary: parent.sent,
    toWorker: worker.sent,
    cut: (isCut) => {
      parent.isCut = isCut
    },
    disconnect,
    die: () => {
      disconnect()
      worker.emit('exit')
    },
  }
}

/** Lets messages arrive, and what comes of them. */
export async function turns(count = 6): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
}

export const START_MS = 1_789_000_000_000

/** A clock that goes on with each turn of the event loop until the tests of a file are over: where the machine stands still no lease comes too late. */
export function clockOfTurns(): ManualClock {
  const clock = manualClock(START_MS)
  let isOver = false
  const turn = (): void => {
    clock.advance(MS_OF_A_TURN)
    if (!isOver) setImmediate(turn)
  }
  before(() => turn())
  after(() => {
    isOver = true
  })
  return clock
}

/** A primary and a worker within this process, on one clock. */
export function fleet<P extends Policy>(
  policy: P,
  { served: own, serve = {}, worker = {} }: { served?: ServableLimiter; serve?: ServeOptions; worker?: Partial<SharedOptions> } = {},
) {
  const clock = manualClock(START_MS)
  const pair = channelPair()
  const served = serveLimiter(own ?? policy, { clock, ...serve })
  served.serve(pair.worker)
  const limiter = createLimiter(policy, { store: primary({ process: pair.parent }), clock, ...worker })
  return { clock, pair, served, limiter }
}
