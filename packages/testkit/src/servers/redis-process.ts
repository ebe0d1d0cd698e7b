import { execFile, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePorts } from './free-ports.js'
import { commandBytes, ErrorReply, type RespReply, repliesIn } from './resp.js'
import { ServerChild } from './server-child.js'
import { until } from './until.js'

/** So long a primary has to be silent before its replica takes over. */
const DOWN_AFTER_MS = 500
const NAME = 'sluicegate'

/** A primary, its replica, and three sentinels that watch them, on loopback. */
export class RedisSentinel {
  readonly name = NAME
  readonly servers: readonly RedisProcess[]
  readonly sentinels: readonly RedisProcess[]
  private readonly folder: string

  private constructor(servers: readonly RedisProcess[], sentinels: readonly RedisProcess[], folder: string) {
    this.servers = servers
    this.sentinels = sentinels
    this.folder = folder
  }

  static async start(): Promise<RedisSentinel> {
    const primary = await RedisProcess.start()
    const replica = await RedisProcess.start({ args: ['--replicaof', primary.host, String(primary.port)] })
    const folder = mkdtempSync(join(tmpdir(), 'sluicegate-sentinel-'))
    const sentinels = await Promise.all(
      (await freePorts(3)).map((port) => {
        const file = join(folder, `${port}.conf`)
        writeFileSync(file, configOf(primary.port))
        return RedisProcess.start({ port, file, args: ['--sentinel'] })
      }),
    )
    const watched = new RedisSentinel([primary, replica], sentinels, folder)
    await until('all sentinels know each other and the replica', () => watched.isReady())
    return watched
  }

  /** Where a client asks for the primary. */
  get roots(): { readonly host: string; readonly port: number }[] {
    return this.sentinels.map(({ host, port }) => ({ host, port }))
  }

  /** Who is the primary now, as a sentinel that answers says. */
  async primary(): Promise<RedisProcess> {
    for (const sentinel of this.sentinels) {
      const address = await sentinel.ask('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME).catch(() => '')
      const found = this.servers.find(({ port }) => address.split('\n').includes(String(port)))
      if (found !== undefined) return found
    }
    throw new Error('no sentinel knows a primary')
  }

  /** Whether all sentinels see a primary, a replica and each other, all well. */
  async isReady(): Promise<boolean> {
    const infos = await Promise.all(this.sentinels.map((sentinel) => sentinel.ask('INFO', 'sentinel').catch(() => '')))
    return infos.every((info) => info.includes('status=ok') && info.includes('slaves=1,sentinels=3'))
  }

  async stop(): Promise<void> {
    await Promise.all([...this.sentinels, ...this.servers].map((server) => server.stop()))
    rmSync(this.folder, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

function configOf(primaryPort: number): string {
  return [
    `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} 2`,
    `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${NAME} 5000`,
    '',
  ].join('\n')
}

const SOURCE = fileURLToPath(new URL('../../native/wall-clock.c', import.meta.url))

/** The wall clock of one program, by a library of our own: Redis hangs under libfaketime. Its monotonic clock stays as it is. */
class WallClock {
  private readonly library: string
  private readonly file: string

  /** @param folder gets the library, compiled by gcc, and the offset. */
  constructor(folder: string) {
    this.library = join(folder, 'wall-clock.so')
    this.file = join(folder, 'wall-clock')
    writeFileSync(this.file, Buffer.alloc(8))
    const { status, stderr } = spawnSync('gcc', ['-O1', '-Wall', '-shared', '-fPIC', '-o', this.library, SOURCE])
    if (status !== 0) throw new Error(`gcc failed or is missing (apt install gcc libc6-dev): ${stderr}`)
  }

  /** A command line that runs the program on this clock; the process has the id of the program itself. */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]] {
    return ['env', [`LD_PRELOAD=${this.library}`, `WALL_CLOCK_FILE=${this.file}`, program, ...args]]
  }

  /** Moves it so far from the clock of the machine, in one step, while the program runs. */
  move(bySeconds: number): void {
    const offset = Buffer.alloc(8)
    offset.writeBigInt64LE(BigInt(Math.round(bySeconds * 1_000_000)))
    // Written in its place: the program has mapped it.
    writeFileSync(this.file, offset, { flag: 'r+' })
  }
}

/** Scripts that never end are asked for, too. */
const LONGEST_MS = 300_000

/**
 * What a server answers to one command on a connection of its own: a text or a number, or a line for each item of a list, as `redis-cli` prints
 * it. Rejects when the server cannot be reached, closes the connection, or answers with an error.
 */
function redisRequest(address: { readonly host: string; readonly port: number }, command: readonly string[], longestMs = LONGEST_MS) {
  return new Promise<string>((resolve, reject) => {
    const socket = connect(address)
    const fail = (reason: string): void => {
      socket.destroy()
      reject(new Error(`${command.join(' ')} on port ${address.port}: ${reason}`))
    }
    let received = Buffer.alloc(0)
    socket.on('data', (data) => {
      received = Buffer.concat([received, data])
      const reply = firstIn(received)
      if (reply === undefined) return
      if (reply instanceof ErrorReply) return fail(reply.message)
      socket.destroy()
      resolve(printed(reply).trimEnd())
    })
    socket.once('error', ({ message }) => fail(message))
    socket.once('close', () => fail('the connection was closed'))
    socket.setTimeout(longestMs, () => fail(`no answer in ${longestMs} ms`))
    socket.write(commandBytes(...command))
  })
}

function firstIn(bytes: Buffer): RespReply | undefined {
  try {
    return repliesIn(bytes)[0]
  } catch {
    return undefined
  }
}

function printed(reply: RespReply): string {
  if (reply instanceof ErrorReply) return reply.message
  if (typeof reply === 'string') return Buffer.from(reply, 'latin1').toString()
  return Array.isArray(reply) ? reply.map(printed).join('\n') : String(reply ?? '')
}

/** A server to test on, by name or path: `redis-server` unless the environment names another that speaks the same, such as `valkey-server`. */
const SERVER = process.env.SLUICEGATE_REDIS_SERVER ?? 'redis-server'
/** A server without an answer in this time is not ready. */
const READY_MS = 1000

export interface RedisProcessOptions {
  /** One that is free unless given. */
  readonly port?: number
  /** Further arguments, such as `--cluster-enabled yes`. */
  readonly args?: readonly string[]
  /** A file of settings, which the server may write to. */
  readonly file?: string
  /** Another program than the one that all are tested on. */
  readonly command?: string
  /** Whether its wall clock can be moved while it runs. */
  readonly hasMovableClock?: boolean
}

/** A real server on loopback, with nothing on disk but in its own folder. */
export class RedisProcess {
  readonly host = '127.0.0.1'
  readonly port: number
  private readonly options: RedisProcessOptions
  private readonly folder = mkdtempSync(join(tmpdir(), 'sluicegate-redis-'))
  private readonly clock: WallClock | undefined
  private child: ServerChild | undefined

  private constructor(port: number, options: RedisProcessOptions) {
    this.options = options
    this.port = port
    this.clock = options.hasMovableClock ? new WallClock(this.folder) : undefined
  }

  /** Resolves when it answers. */
  static async start(options: RedisProcessOptions = {}): Promise<RedisProcess> {
    const [free = 0] = options.port === undefined ? await freePorts(1) : []
    const server = new RedisProcess(options.port ?? free, options)
    await server.start()
    return server
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`
  }

  /** Starts it, or starts it again after {@link kill}: with what it had on disk, which is nothing unless `args` say so. */
  async start(): Promise<void> {
    const { port } = this
    const { args = [], file, command = SERVER } = this.options
    // A sentinel keeps nothing, and knows none of these settings.
    const kept = file === undefined ? ['--save', '', '--appendonly', 'no'] : []
    const own = [...(file === undefined ? [] : [file]), '--port', String(port), '--bind', this.host, '--dir', this.folder, ...kept]
    const isThere = (pid: number): Promise<boolean> => isReady(this, pid)
    const line = [command, [...own, ...args]] as const
    this.child = await ServerChild.start(`${command} on port ${port}`, this.clock?.command(...line) ?? line, isThere)
  }

  /** Ends it at once, as a crash would. */
  kill(): Promise<void> {
    return this.end()
  }

  /** Stops it in the middle of whatever it does, until {@link resume}. */
  pause(): void {
    this.child?.signal('SIGSTOP')
  }

  resume(): void {
    this.child?.signal('SIGCONT')
  }

  /** Moves its wall clock so far from that of the machine; it goes on from there. */
  moveClock(bySeconds: number): void {
    if (this.clock === undefined) throw new Error('start it with hasMovableClock')
    this.clock.move(bySeconds)
  }

  /** What it answers to a command, as `redis-cli` prints it. */
  ask(...command: readonly string[]): Promise<string> {
    return redisRequest(this, command)
  }

  /** How often it has run a command since it started, or since `CONFIG RESETSTAT`. */
  async callsOf(command: string): Promise<number> {
    const stats = await this.ask('INFO', 'commandstats')
    return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0)
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    await this.end()
    rmSync(this.folder, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  private async end(): Promise<void> {
    const { child } = this
    this.child = undefined
    await child?.end('SIGKILL')
  }
}

/** Whether this very process takes commands: one that is loading does not, and another may have got the port. */
async function isReady(address: RedisProcess, pid: number): Promise<boolean> {
  const [pong, server] = await Promise.all([['PING'], ['INFO', 'server']].map((command) => redisRequest(address, command, READY_MS))).catch(
    () => [],
  )
  return pong === 'PONG' && server?.includes(`process_id:${pid}\r\n`) === true
}

const run = promisify(execFile)
const MOST_BYTES = 2 ** 26

/** What `redis-cli` prints. Rejects when the server cannot be reached or answers with an error. */
export async function redisCli(...args: readonly string[]): Promise<string> {
  const { stdout } = await run('redis-cli', ['-e', ...args], { timeout: LONGEST_MS, maxBuffer: MOST_BYTES })
  return stdout.trimEnd()
}
