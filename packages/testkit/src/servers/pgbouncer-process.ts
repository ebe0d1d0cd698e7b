import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePorts } from './free-ports.js'
import type { PostgresProcess } from './postgres-process.js'
import { withoutRoot } from './postgres-process.js'
import { ServerChild } from './server-child.js'

/** A real PgBouncer before a server, in transaction mode: each transaction may run on another connection of the server. */
export class PgBouncerProcess {
  readonly host = '127.0.0.1'
  readonly port: number
  readonly url: string
  private readonly folder = mkdtempSync(join(tmpdir(), 'sluicegate-pgbouncer-'))
  private child: ServerChild | undefined

  private constructor(port: number, { user, database }: PostgresProcess) {
    this.port = port
    this.url = `postgres://${user}@${this.host}:${port}/${database}`
  }

  /** @param connections to the server, for all clients together */
  static async before(server: PostgresProcess, connections: number): Promise<PgBouncerProcess> {
    const [port = 0] = await freePorts(1)
    const bouncer = new PgBouncerProcess(port, server)
    const users = join(bouncer.folder, 'users.txt')
    writeFileSync(users, `"${server.user}" ""\n`)
    writeFileSync(
      join(bouncer.folder, 'pgbouncer.ini'),
      `[databases]
* = host=${server.host} port=${server.port}
[pgbouncer]
listen_addr = ${bouncer.host}
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 500
server_login_retry = 1
ignore_startup_parameters = extra_float_digits
`,
    )
    chmodSync(bouncer.folder, 0o755)
    await bouncer.start()
    return bouncer
  }

  /** Starts it, or starts it again after {@link kill}. */
  async start(): Promise<void> {
    const command = withoutRoot('pgbouncer', [join(this.folder, 'pgbouncer.ini')])
    this.child = await ServerChild.start(`PgBouncer on port ${this.port}`, command, () => answers(this.url))
  }

  /** Ends it at once, with all its connections. */
  async kill(): Promise<void> {
    await this.child?.end('SIGKILL')
  }

  /** Stops it in the middle of whatever it does, until {@link resume}. */
  pause(): void {
    this.child?.signal('SIGSTOP')
  }

  resume(): void {
    this.child?.signal('SIGCONT')
  }

  async stop(): Promise<void> {
    await this.kill()
    rmSync(this.folder, { recursive: true, force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  try {
    await client.connect()
    await client.query('SELECT 1')
    await client.end()
    return true
  } catch {
    return false
  }
}
