import cluster from 'node:cluster'

/** The variable by which a primary process gives a worker its slot. */
export const SLOT_VARIABLE = 'SLUICEGATE_WORKER_SLOT'

/** A worker, as the primary process sees it. */
export interface Child {
  send(message: object): void
  /** Ends it at once. */
  kill(): void
}

/** What a worker causes. */
export interface ChildEvents {
  message(message: unknown): void
  error(error: Error): void
  /** Once, at its end. */
  exit(reason: string): void
}

/** Workers that accept connections themselves: one that dies takes none with it that this process has handed over. */
export function shareByProcesses(): void {
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary({ serialization: 'advanced' })
}

/** Starts the program once more as a worker. */
export function forkChild(slot: number, events: ChildEvents): Child {
  const worker = cluster.fork({ [SLOT_VARIABLE]: String(slot) })
  worker.on('message', (message) => events.message(message))
  worker.on('error', (error) => events.error(error))
  worker.once('exit', (code, signal) => events.exit(signal ?? `exit code ${code}`))
  return {
    // A worker that ends does not take its last messages.
    send: (message) => void worker.send(message, () => undefined),
    kill: () => void worker.process.kill('SIGKILL'),
  }
}

/** The slot of this process; undefined when it is no worker. */
export function ownSlot(): number | undefined {
  const slot = process.env[SLOT_VARIABLE]
  return cluster.isWorker && slot !== undefined ? Number(slot) : undefined
}
