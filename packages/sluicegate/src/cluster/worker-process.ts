/** One end of a channel between two processes. */
export interface ChannelEnd {
  /** With a callback a channel that closes meanwhile is no error of the whole process. */
  send?(message: object, callback: (error: Error | null) => void): boolean
  on(event: 'message', listener: (message: unknown) => void): unknown
  removeListener(event: 'message', listener: (message: unknown) => void): unknown
}

/** A process that was started with a channel: a child process that was forked, or a worker of `node:cluster`. */
export interface WorkerProcess extends ChannelEnd {
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'exit', listener: () => void): unknown
  removeListener(event: 'message', listener: (message: unknown) => void): unknown
  removeListener(event: 'exit', listener: () => void): unknown
}

/** In a process that was started with a channel: `process`. */
export interface ParentChannel extends ChannelEnd {
  readonly connected?: boolean
  on(event: 'message', listener: (message: unknown) => void): unknown
  on(event: 'disconnect', listener: () => void): unknown
  removeListener(event: 'message', listener: (message: unknown) => void): unknown
  removeListener(event: 'disconnect', listener: () => void): unknown
}

/** The module `node:cluster` of a primary process. */
export interface PrimaryCluster {
  readonly workers?: Readonly<Record<string, WorkerProcess | undefined>> | undefined
  on(event: 'fork', listener: (worker: WorkerProcess) => void): unknown
  removeListener(event: 'fork', listener: (worker: WorkerProcess) => void): unknown
}
