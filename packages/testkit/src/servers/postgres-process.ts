import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { freePorts } from './free-ports.js'
import { ServerChild } from './server-child.js'

/** Where Debian puts the programs of each version. */
const DEBIAN = '/usr/lib/postgresql'

/** A program of PostgreSQL: of the newest version that Debian installed, else by its name. */
function postgresProgram(name: string): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : []
  const found = versions.map((version) => join(DEBIAN, version, 'bin', name)).find(existsSync)
  return found ?? name
}

/** The user that runs servers which refuse root. */
const SYSTEM_USER = 'postgres'

/** A command line that runs as no root; the process has the id of the program itself. */
export function withoutRoot(program: string, args: readonly string[]): readonly [string, readonly string[]] {
  if (process.getuid?.() !== 0) return [program, args]
  return ['setpriv', [`--reuid=${SYSTEM_USER}`, `--regid=${SYSTEM_USER}`, '--clear-groups', program, ...args]]
}

/** The wall clock of one program, by libfaketime: it can be moved while the program runs. Its monotonic clock stays as it is. */
class FakedClock {
  private readonly settings: readonly string[]
  private readonly file: string

  /** @param file says how far the clock is off; the program has to be allowed to read it. */
  constructor(file: string) {
    this.file = file
    this.move(0)
    const { stdout } = spawnSync('faketime', ['-f', '+0', 'printenv', 'LD_PRELOAD'])
    const library = stdout?.toString().trim() ?? ''
    if (library === '') throw new Error('faketime is missing: apt install faketime')
    this.settings = [
      `LD_PRELOAD=${library}`,
      `FAKETIME_TIMESTAMP_FILE=${file}`,
      'FAKETIME_NO_CACHE=1',
      'FAKETIME_DISABLE_SHM=1',
      'DONT_FAKE_MONOTONIC=1',
    ]
  }

  /** A command line that runs the program on this clock; the process has the id of the program itself. */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]] {
    return ['env', [...this.settings, program, ...args]]
  }

  /** Moves it so far from the clock of the machine. */
  move(bySeconds: number): void {
    writeFileSync(this.file, `${bySeconds < 0 ? '' : '+'}${bySeconds}\n`, { mode: 0o644 })
  }
}

/** A test needs nothing after a crash of the machine; connections are for hundreds of callers. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'off',
  full_page_writes: 'off',
  shared_buffers: '64MB',
  max_connections: '300',
}
const USER = 'sluicegate'
/** Data as `initdb` makes them, of each version and user: a copy costs a tenth. */
const TEMPLATES = fileURLToPath(new URL('../../.cache/postgres', import.meta.url))

export interface PostgresProcessOptions {
  /** Further settings, such as `{ default_transaction_isolation: 'serializable' }`. */
  readonly settings?: Readonly<Record<string, string>>
  /** The folder in which its own folder is made. */
  readonly under?: string
  /** Further arguments of `initdb`. */
  readonly initdb?: readonly string[]
  /** It follows this one, and can only be read until it is promoted. */
  readonly standbyOf?: PostgresProcess
  /** Whether its wall clock can be moved, by libfaketime. */
  readonly hasMovableClock?: boolean
}

/** A real PostgreSQL on loopback, with its files in a folder of its own. */
export class PostgresProcess {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly database = 'postgres'
  readonly user = USER
  private readonly settings: Readonly<Record<string, string>>
  private readonly folder: string
  private readonly clock: FakedClock | undefined
  private child: ServerChild | undefined

  private constructor(port: number, { settings = {}, under = tmpdir(), initdb = [], hasMovableClock, standbyOf }: PostgresProcessOptions) {
    this.port = port
    this.settings = { ...SETTINGS, ...settings }
    this.folder = newFolder(under)
    this.clock = hasMovableClock ? new FakedClock(join(this.folder, 'clock')) : undefined
    if (standbyOf === undefined) {
      this.initialize(initdb)
    } else {
      const { host, port: from } = standbyOf
      this.make('pg_basebackup', ['-D', this.data, '-h', host, '-p', String(from), '-U', USER, '-R', '-c', 'fast', '--no-sync'])
    }
  }

  private initialize(initdb: readonly string[]): void {
    const made = [postgresProgram('initdb'), process.getuid?.() ?? '', ...initdb].join(' ')
    const template = join(TEMPLATES, made.replaceAll(/[^\w.=-]+/g, '_'))
    if (existsSync(template)) {
      copyFolder(template, this.data)
      return
    }
    const own = ['-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions']
    this.make('initdb', ['-D', this.data, ...own, ...initdb])
    mkdirSync(TEMPLATES, { recursive: true })
    const copy = mkdtempSync(`${template}-`)
    try {
      copyFolder(this.data, join(copy, 'data'))
      renameSync(join(copy, 'data'), template)
    } catch (error) {
      // Another process was first.
      if (!existsSync(template)) throw error
    } finally {
      rmSync(copy, { recursive: true, force: true })
    }
  }

  /** Runs a program that makes the folder of data. */
  private make(name: string, given: readonly string[]): void {
    const [program, args] = withoutRoot(postgresProgram(name), given)
    const { status, stderr } = spawnSync(program, args, { cwd: this.folder })
    if (status !== 0) throw new Error(`${name} failed: ${stderr}`)
  }

  /** Resolves when it answers. */
  static async start(options: PostgresProcessOptions = {}): Promise<PostgresProcess> {
    const [port = 0] = await freePorts(1)
    const server = new PostgresProcess(port, options)
    await server.start()
    return server
  }

  get url(): string {
    return this.urlAt(this.port)
  }

  /** The same through another port, such as that of a proxy. */
  urlAt(port: number): string {
    return `postgres://${USER}@${this.host}:${port}/${this.database}`
  }

  /** Starts it, or starts it again after {@link kill} or {@link shutDown}, with what it had on disk. */
  async start(): Promise<void> {
    const settings = Object.entries(this.settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const own = [postgresProgram('postgres'), ['-D', this.data, '-p', String(this.port), ...settings]] as const
    const command = withoutRoot(...(this.clock?.command(...own) ?? own))
    this.child = await ServerChild.start(`PostgreSQL on port ${this.port}`, command, () => this.isReady())
  }

  get isRunning(): boolean {
    return this.child?.isRunning === true
  }

  /** Moves its wall clock so far from that of the machine; it goes on from there. */
  moveClock(bySeconds: number): void {
    if (this.clock === undefined) throw new Error('start it with hasMovableClock')
    this.clock.move(bySeconds)
  }

  /** Ends it at once, with all its processes, as a crash would: unlogged tables are empty afterwards. */
  async kill(): Promise<void> {
    await this.child?.end('SIGKILL')
  }

  /** Ends it in the ordinary way, connections cut: all tables are kept. */
  async shutDown(): Promise<void> {
    await this.child?.end('SIGINT')
  }

  /** Stops it in the middle of whatever it does, until {@link resume}. */
  pause(): void {
    this.child?.signal('SIGSTOP')
  }

  resume(): void {
    this.child?.signal('SIGCONT')
  }

  /** Makes a standby the primary. */
  async promote(): Promise<void> {
    await this.ask('SELECT pg_promote(true, 30)')
  }

  /** Rows of a statement, on a connection of its own. */
  async ask<Row extends object = Record<string, unknown>>(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url })
    client.on('error', () => undefined)
    await client.connect()
    try {
      const result = await client.query(text)
      return (Array.isArray(result) ? result.at(-1) : result).rows
    } finally {
      await client.end()
    }
  }

  /** Ends it and removes its folder. */
  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 10 })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  private get data(): string {
    return join(this.folder, 'data')
  }

  /** Whether this very server takes statements: another may have got the port. */
  private async isReady(): Promise<boolean> {
    try {
      const [row] = await this.ask<{ data: string }>(`SELECT current_setting('data_directory') AS data`)
      return row?.data === this.data
    } catch {
      return false
    }
  }
}

/** With its owner and its modes. */
function copyFolder(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-pR', from, to])
  if (status !== 0) throw new Error(`cp failed: ${stderr}`)
}

/** A folder that the user of the server can use. */
function newFolder(under: string): string {
  const folder = mkdtempSync(join(under, 'sluicegate-postgres-'))
  if (process.getuid?.() === 0) {
    const { stdout } = spawnSync('id', ['-u', 'postgres'])
    chownSync(folder, Number(stdout), statSync(folder).gid)
    chmodSync(folder, 0o700)
  }
  return folder
}
