import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { WorkerCommand, WorkerReport, WorkerStart } from './cluster-worker.js'

/** A worker in a separate process, which runs commands. */
export class ForkedWorker {
  readonly child: ChildProcess

  constructor(start: WorkerStart) {
    this.child = fork(fileURLToPath(new URL('cluster-worker.js', import.meta.url)), [JSON.stringify(start)])
  }

  /** Messages that are not of the library are the caller's own. */
  async run(command: WorkerCommand): Promise<WorkerReport> {
    const answered = new Promise<WorkerReport>((resolve, reject) => {
      const { child } = this
      const done = (settle: () => void): void => {
        child.removeListener('message', onMessage)
        child.removeListener('exit', onExit)
        settle()
      }
      const onMessage = (message: unknown): void => {
        if (typeof message !== 'object' || message === null || !('ran' in message)) return
        done(() => resolve(message as unknown as WorkerReport))
      }
      const onExit = (): void => done(() => reject(new Error('the worker ended')))
      child.on('message', onMessage)
      child.on('exit', onExit)
    })
    this.child.send(command)
    return answered
  }

  /** Waits for the end of its process. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const gone = once(this.child, 'exit')
    this.child.kill(signal)
    await gone
  }
}
