import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from './free-ports.js'
import { RedisProcess } from './redis-process.js'

/** So long a primary has to be silent before its replica takes over. */
const DOWN_AFTER_MS = 500

/** A primary, its replica, and three sentinels that watch them, on loopback. */
export class RedisSentinel {
  readonly name = 'sluicegate'
  readonly servers: readonly RedisProcess[]
  readonly sentinels: readonly RedisProcess[]
  private readonly folder: string

  private constructor(servers: readonly RedisProcess[], sentinels: readonly RedisProcess[], folder: string) {
    this.servers = servers
    this.sentinels = sentinels
    this.folder = folder
  }

  static async start(): Promise<RedisSentinel> {
    const [primaryPort = 0, replicaPort = 0, ...ports] = await freePorts(5)
    const primary = await RedisProcess.start({ port: primaryPort })
    const replica = await RedisProcess.start({ port: replicaPort, args: ['--replicaof', '127.0.0.1', String(primaryPort)] })
    const folder = mkdtempSync(join(tmpdir(), 'sluicegate-sentinel-'))
    const sentinels = await Promise.all(
      ports.map((port) => {
        const file = join(folder, `${port}.conf`)
        writeFileSync(file, configOf(primaryPort))
        return RedisProcess.start({ port, file, args: ['--sentinel'] })
      }),
    )
    return new RedisSentinel([primary, replica], sentinels, folder)
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
  const name = 'sluicegate'
  return [
    `sentinel monitor ${name} 127.0.0.1 ${primaryPort} 2`,
    `sentinel down-after-milliseconds ${name} ${DOWN_AFTER_MS}`,
    `sentinel failover-timeout ${name} 5000`,
    '',
  ].join('\n')
}
