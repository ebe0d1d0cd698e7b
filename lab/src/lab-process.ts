import { type ChildProcess, spawn } from 'node:child_process'

/** Programs that still run when this process ends, for whatever reason, end with it. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** A program of the lab, with the end of its output for error messages. */
export class LabProcess {
  readonly child: ChildProcess
  /** Resolves with the exit code, or with the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>
  stdout = ''
  #stderr = ''

  constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
    running.add(this.child)
    this.child.stdout?.on('data', (chunk) => {
      this.stdout += chunk
    })
    this.child.stderr?.on('data', (chunk) => {
      this.#stderr = (this.#stderr + chunk).slice(-2_000)
    })
    this.ended = new Promise((resolve) => {
      this.child.once('error', (error) => {
        this.#stderr += error.message
        resolve(1)
      })
      this.child.once('close', (code, signal) => {
        running.delete(this.child)
        resolve(code ?? signal)
      })
    })
  }

  get stderr(): string {
    return this.#stderr
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.child.kill(signal)
    await this.ended
  }
}
