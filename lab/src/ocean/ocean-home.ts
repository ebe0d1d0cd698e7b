import { FaultProxy, RedisProcess, until } from 'sluicegate-testkit'

/** All that was answered is on disk before its answer: a killed server returns with it. */
const KEPT = ['--appendonly', 'yes', '--appendfsync', 'no']

/** The home of the budgets: a Redis that keeps its data, and a replica that can take its place. */
export class OceanHome {
  primary: RedisProcess
  #replica: RedisProcess
  #aheadS = 0
  /** Steps ahead of its wall clock so far, each of which may refill a budget. */
  stepsAhead = 0
  readonly #links: FaultProxy[] = []

  private constructor(primary: RedisProcess, replica: RedisProcess) {
    this.primary = primary
    this.#replica = replica
  }

  static async start(): Promise<OceanHome> {
    const primary = await RedisProcess.start({ args: KEPT, hasMovableClock: true })
    const replica = await RedisProcess.start({ args: KEPT, hasMovableClock: true })
    const home = new OceanHome(primary, replica)
    await home.#follow()
    return home
  }

  /** A way to it, which leads to the replica when that was promoted. */
  async link(): Promise<FaultProxy> {
    const link = await FaultProxy.before(this.primary)
    this.#links.push(link)
    return link
  }

  /** `kill -9` of the primary, after which the replica has its place, and its address. */
  async promote(): Promise<void> {
    const [killed, next] = [this.primary, this.#replica]
    await killed.kill()
    await next.ask('REPLICAOF', 'NO', 'ONE')
    for (const link of this.#links) link.lead(next)
    this.primary = next
    this.#replica = killed
  }

  /** Steps the wall clock of both servers. */
  stepClock(bySeconds: number): void {
    this.#aheadS += bySeconds
    if (bySeconds > 0) this.stepsAhead++
    for (const server of [this.primary, this.#replica]) server.moveClock(this.#aheadS)
  }

  /** The killed server comes back as the replica. */
  async rejoin(): Promise<void> {
    await this.#replica.start()
    await this.#follow()
  }

  async stop(): Promise<void> {
    await Promise.all([this.primary.stop(), this.#replica.stop()])
  }

  async #follow(): Promise<void> {
    await this.#replica.ask('REPLICAOF', this.primary.host, String(this.primary.port))
    await until('the replica has followed', async () => (await this.#replica.ask('INFO', 'replication')).includes('master_link_status:up'))
  }
}
