import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from './free-ports.js'
import { RedisProcess } from './redis-process.js'
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
