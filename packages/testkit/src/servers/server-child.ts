import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { until } from './until.js'

/** The processes that a process has started. Linux has them in a file, which costs a hundredth of a program that lists them. */
export function childrenOf(pid: number): readonly number[] {
  const ids = existsSync('/proc/self/task') ? listed(pid) : spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)]).stdout?.toString()
  return (ids ?? '')
    .split(/\s+/)
    .map(Number)
    .filter((each) => each > 0)
}

function listed(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  } catch {
    // It has just ended.
    return ''
  }
}

/** Servers that still run when this process ends, for whatever reason, end with it. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/** How much of the log an error shows. */
const LOG = 4000

/** One run of a real server. */
export class ServerChild {
  private readonly child: ChildProcess

  private constructor(child: ChildProcess) {
    this.child = child
  }

  /** Resolves when it is ready; rejects with its log when it ends before, or is not ready after 30 s, and leaves nothing running. */
  static async start(
    name: string,
    [program, args]: readonly [string, readonly string[]],
    isReady: (pid: number) => Promise<boolean>,
  ): Promise<ServerChild> {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    running.add(child)
    let log = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        log = (log + chunk.toString()).slice(-LOG)
      })
    }
    let hasEnded = false
    const ended = new Promise<never>((_, reject) => {
      child.once('error', (error) => {
        hasEnded = true
        reject(error)
      })
      child.once('exit', (code) => {
        hasEnded = true
        running.delete(child)
        reject(new Error(`${name} ended (${code}): ${log}`))
      })
    })
    ended.catch(() => undefined)
    try {
      await Promise.race([ended, until(`${name} answers`, async () => hasEnded || (await isReady(child.pid ?? 0)))])
    } catch (error) {
      child.kill('SIGKILL')
      throw error
    }
    return new ServerChild(child)
  }

  get isRunning(): boolean {
    const { exitCode, signalCode } = this.child
    return exitCode === null && signalCode === null
  }

  /** A signal to it and to the processes that it started. @returns whom it was sent to. */
  signal(signal: NodeJS.Signals): readonly number[] {
    const { pid = 0 } = this.child
    const all = [pid, ...childrenOf(pid)].filter((each) => each > 0)
    for (const each of all) sendTo(each, signal)
    return all
  }

  /** Sends a signal to it and waits until it is gone; of SIGKILL also its processes, which keep what they share until they are. */
  async end(signal: NodeJS.Signals): Promise<void> {
    const { child } = this
    if (!this.isRunning) return
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    const killed = signal === 'SIGKILL' ? this.signal(signal) : []
    if (signal !== 'SIGKILL') child.kill(signal)
    await gone
    await until('all processes of the server are gone', () => !killed.some(isThere))
  }
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has just ended.
  }
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
