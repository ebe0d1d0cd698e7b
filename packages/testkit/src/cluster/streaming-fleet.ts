import { fork } from 'node:child_process'
import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import { primary, serveLimiter } from '../../../sluicegate/dist/cluster/index.js'
import type { ServeOptions } from '../../../sluicegate/dist/cluster/serve-limiter.js'
import type { Policy, SharedOptions } from '../../../sluicegate/dist/index.js'
import { createLimiter } from '../../../sluicegate/dist/index.js'

/** What the program is started with: how many workers, of `node:cluster` or forked. */
export interface StreamingStart {
  readonly policy: Policy
  readonly workers: number
  readonly by: 'cluster' | 'fork'
  readonly serve?: Omit<ServeOptions, 'cluster'>
  readonly options?: Omit<SharedOptions, 'store'>
  /** Takes of a worker in one go, again and again. */
  readonly takes: number
}

/** A line of a worker's: how its last takes came out, by source. */
export interface StreamedLine {
  readonly pid: number
  readonly passed: Readonly<Record<string, number>>
  readonly denied: Readonly<Record<string, number>>
  /** The least that a denial without the primary said to wait. */
  readonly retryAfterMs: number
}

const PAUSE_MS = 20

// A program: a primary, and workers that say on the standard output how their takes come out. That goes past the primary, which may be stopped.
const text = process.argv[2] as string
const start = JSON.parse(text) as StreamingStart

if (process.send === undefined) {
  const served = serveLimiter(start.policy, { ...start.serve, ...(start.by === 'cluster' && { cluster }) })
  cluster.setupPrimary({ args: [text] })
  for (let i = 0; i < start.workers; i++) {
    if (start.by === 'cluster') cluster.fork()
    else served.serve(fork(fileURLToPath(import.meta.url), [text]))
  }
} else {
  const limiter = createLimiter(start.policy, { store: primary(), ...start.options })
  process.on('disconnect', () => process.exit())
  const round = async (): Promise<void> => {
    const passed: Record<string, number> = {}
    const denied: Record<string, number> = {}
    let retryAfterMs = Number.MAX_SAFE_INTEGER
    for (const decision of await Promise.all(Array.from({ length: start.takes }, () => limiter.take('all')))) {
      const counts = decision.allowed ? passed : denied
      counts[decision.source] = (counts[decision.source] ?? 0) + 1
      if (!decision.allowed && decision.source === 'outage') retryAfterMs = Math.min(retryAfterMs, decision.retryAfterMs)
    }
    const line: StreamedLine = { pid: process.pid, passed, denied, retryAfterMs }
    process.stdout.write(`${JSON.stringify(line)}\n`)
    setTimeout(round, PAUSE_MS)
  }
  await round()
}
