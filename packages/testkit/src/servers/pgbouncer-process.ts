import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePorts } from './free-ports.js'
import type { PostgresProcess } from './postgres-process.js'
import { withoutRoot } from './postgres-programs.js'
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
    const file = join(bouncer.folder, 'pgbouncer.ini')
    const users = join(bouncer.folder, 'users.txt')
    writeFileSync(users, `"${server.user}" ""\n`)
    writeFileSync(
      file,
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
ignore_startup_parameters = extra_float_digits
`,
    )
    chmodSync(bouncer.folder, 0o755)
    bouncer.child = await ServerChild.start(`PgBouncer on port ${port}`, withoutRoot('pgbouncer', [file]), () => answers(bouncer.url))
    return bouncer
  }

  async stop(): Promise<void> {
    await this.child?.end('SIGKILL')
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
