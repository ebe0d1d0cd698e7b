import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const START_MS = 10_000
const ASK_MS = 20
/** Servers that still run when this process ends, for whatever reason, end with it. */
const running = new Set<ChildProcess>()
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

export interface RedisProcessOptions {
  readonly port: number
  /** Further arguments, such as `--cluster-enabled yes`. */
  readonly args?: readonly string[]
  /** A file of settings, which the server may write to. */
  readonly file?: string
  /** `redis-server` (default) or another that speaks the same, such as `valkey-server`. */
  readonly command?: string
}

/** A real server on loopback, with nothing on disk but in a folder of its own. */
export class RedisProcess {
  readonly host = '127.0.0.1'
  readonly port: number
  private readonly options: RedisProcessOptions
  private readonly folder = mkdtempSync(join(tmpdir(), 'sluicegate-redis-'))
  private child: ChildProcess | undefined

  private constructor(options: RedisProcessOptions) {
    this.options = options
    this.port = options.port
  }

  /** Resolves when it answers. */
  static async start(options: RedisProcessOptions): Promise<RedisProcess> {
    const server = new RedisProcess(options)
    await server.start()
    return server
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`
  }

  /** Starts it, or starts it again after {@link kill}: with what it had on disk, which is nothing unless `args` say so. */
  async start(): Promise<void> {
    const { port, args = [], file, command = 'redis-server' } = this.options
    // A sentinel keeps nothing, and knows none of these settings.
    const kept = file === undefined ? ['--save', '', '--appendonly', 'no'] : []
    const own = [...(file === undefined ? [] : [file]), '--port', String(port), '--bind', this.host, '--dir', this.folder, ...kept]
    const child = spawn(command, [...own, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    running.add(child)
    this.child = child
    let log = ''
    child.stdout?.on('data', (chunk: Buffer) => {
      log = (log + chunk.toString()).slice(-4000)
    })
    const ended = new Promise<never>((_, reject) => {
      child.once('error', reject)
      child.once('exit', (code) => {
        running.delete(child)
        reject(new Error(`${command} on port ${port} ended (${code}): ${log}`))
      })
    })
    ended.catch(() => undefined)
    await Promise.race([ended, this.answers()])
  }

  /** Ends it at once, as a crash would. */
  kill(): Promise<void> {
    return this.ended('SIGKILL')
  }

  /** Stops it in the middle of whatever it does, until {@link resume}. */
  pause(): void {
    this.child?.kill('SIGSTOP')
  }

  resume(): void {
    this.child?.kill('SIGCONT')
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    await this.ended('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  private ended(signal: NodeJS.Signals): Promise<void> {
    const { child } = this
    this.child = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
    return new Promise((resolve) => {
      child.once('exit', () => resolve())
      child.kill(signal)
    })
  }

  private async answers(): Promise<void> {
    const untilMs = performance.now() + START_MS
    while (!(await ponged(this.host, this.port))) {
      if (performance.now() > untilMs) throw new Error(`the server on port ${this.port} did not answer within ${START_MS} ms`)
      await new Promise((resolve) => setTimeout(resolve, ASK_MS))
    }
  }
}

/** Whether a server takes commands, one that is loading does not. */
function ponged(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host, () => socket.write('PING\r\n'))
    const end = (answer: boolean) => () => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', (data) => end(data.toString().startsWith('+PONG'))())
    socket.once('error', end(false))
    socket.setTimeout(1000, end(false))
  })
}
