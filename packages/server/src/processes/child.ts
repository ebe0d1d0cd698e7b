import cluster from 'node:cluster'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { ParentChannel, WorkerProcess } from 'sluicegate/cluster'

/** The variable by which a primary process gives a worker its slot. */
const SLOT_VARIABLE = 'SLUICEGATE_WORKER_SLOT'
/** The version of Node.js from which sockets can share a port by `reusePort`. */
const SHARED_PORTS = { major: 22, minor: 12 } as const

/** A worker, a process or a thread, as the primary process sees it. */
export interface Child {
  /** For others who send messages to it. */
  readonly channel: WorkerProcess
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

/** Whether threads can listen on one port. */
export function canSharePorts(version = process.versions.node): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > SHARED_PORTS.major || (major === SHARED_PORTS.major && minor >= SHARED_PORTS.minor)
}

/** Workers that accept connections themselves: one that dies takes none with it that this process has handed over. */
export function shareByProcesses(): void {
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary({ serialization: 'advanced' })
}

/** Starts the program once more as a worker process. */
export function forkChild(slot: number, events: ChildEvents): Child {
  const worker = cluster.fork({ [SLOT_VARIABLE]: String(slot) })
  worker.on('message', (message) => events.message(message))
  worker.on('error', (error) => events.error(error))
  worker.once('exit', (code, signal) => events.exit(signal ?? `exit code ${code}`))
  return {
    channel: worker as WorkerProcess,
    // A worker that ends does not take its last messages.
    send: (message) => void worker.send(message, () => undefined),
    kill: () => void worker.process.kill('SIGKILL'),
  }
}

/** Starts the program once more in a thread of this process. */
export function threadChild(slot: number, events: ChildEvents): Child {
  const [, program = '', ...argv] = process.argv
  const data: ThreadData = { sluicegateSlot: slot }
  const worker = new Worker(program, { argv, workerData: data })
  worker.on('message', (message) => events.message(message))
  worker.on('error', (error) => events.error(error))
  worker.once('exit', (code) => events.exit(`exit code ${code}`))
  const channel: WorkerProcess = {
    send: sendBy(worker),
    on: (event: string, listener: (...values: never[]) => void) => worker.on(event, listener as never),
    removeListener: (event: string, listener: (...values: never[]) => void) => worker.removeListener(event, listener as never),
  }
  return {
    channel,
    send: (message) => worker.postMessage(message),
    kill: () => void worker.terminate(),
  }
}

function sendBy(port: { postMessage(message: object): void }): NonNullable<ParentChannel['send']> {
  return (message, callback) => {
    port.postMessage(message)
    callback(null)
    return true
  }
}

interface ThreadData {
  readonly sluicegateSlot: number
}

/** The slot of this process or thread; undefined when it is no worker. */
export function ownSlot(): number | undefined {
  if (!isMainThread) return (workerData as ThreadData | null)?.sluicegateSlot
  const slot = process.env[SLOT_VARIABLE]
  return cluster.isWorker && slot !== undefined ? Number(slot) : undefined
}

/** The primary process, as a worker sees it. */
export interface PrimaryChannel {
  /** For others who send messages to it. */
  readonly channel: ParentChannel
  send(message: object): void
  /** Ends this worker. */
  leave(): void
}

/** The channel of this worker to the primary process. When that ends, the worker does. */
export function primaryChannel(receive: (message: unknown) => void): PrimaryChannel {
  if (parentPort !== null) {
    const port = parentPort
    port.on('message', receive)
    // A thread does not outlive its process.
    const channel: ParentChannel = {
      send: sendBy(port),
      on: (event: string, listener: (message: unknown) => void) => event === 'message' && port.on(event, listener),
      removeListener: (event: string, listener: (message: unknown) => void) => port.removeListener(event, listener),
    }
    return { channel, send: (message) => port.postMessage(message), leave: () => process.exit(0) }
  }
  // They are for the primary process, and a terminal sends them to all.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
  process.on('message', receive)
  process.on('disconnect', () => process.exit(0))
  return {
    channel: process as ParentChannel,
    send: (message) => void process.send?.(message, undefined, undefined, () => undefined),
    leave: () => process.disconnect(),
  }
}
