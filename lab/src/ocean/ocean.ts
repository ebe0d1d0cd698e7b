import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LoadResult } from 'sluicegate-commands/load/load-result.js'
import { FaultProxy, freePorts, type Random, RedisProcess, until } from 'sluicegate-testkit'
import { type RecordedAnswer, readRecord } from '../admissions.js'
import { loadOn, machineUs } from '../lab-load.js'
import type { LabProcess } from '../lab-process.js'
import { startBalancer } from '../lab-servers.js'
import { type LabPolicy, type NodeSettings, ServiceNode } from '../service-node.js'

/** All that was answered is on disk before its answer: a killed server returns with it. */
const KEPT = ['--appendonly', 'yes', '--appendfsync', 'no']

/** The home of the budgets: a Redis that keeps its data, and a replica that can take its place. */
class OceanHome {
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

/** Each way between a region and the home, in milliseconds. */
const DELAYS_MS = [40, 80, 150] as const
/** Up to this part longer. */
const JITTER = 0.1
const NODES = 2

export const OCEAN_POLICIES = {
  bucket: { limit: 100, windowMs: 1_000, burst: 1_000 },
  window: { algorithm: 'sliding-window', limit: 3_000, windowMs: 30_000, burst: 3_000 },
} as const satisfies Record<string, LabPolicy>

export type OceanPolicy = keyof typeof OCEAN_POLICIES

/** A region: a Redis, service nodes behind a balancer, and the link to the home. */
export class OceanRegion {
  readonly name: string
  readonly delayMs: number
  readonly store: RedisProcess
  readonly link: FaultProxy
  readonly nodes: readonly ServiceNode[]
  readonly port: number
  #balancer: LabProcess | undefined
  readonly #settings: NodeSettings
  #aheadS = 0
  /** Steps ahead of its store's wall clock so far, each of which may refill its share. */
  stepsAhead = 0

  private constructor(delayMs: number, store: RedisProcess, link: FaultProxy, [port = 0, ...ports]: readonly number[], folder: string) {
    this.name = `r${delayMs}`
    this.delayMs = delayMs
    this.store = store
    this.link = link
    this.port = port
    this.#settings = { policies: OCEAN_POLICIES, redis: store.url, mode: 'leased', home: { url: link.url, region: this.name } }
    this.nodes = ports.map((each, i) => new ServiceNode(`${this.name}-${i + 1}`, each, folder, this.#settings))
    this.across()
  }

  static async start(delayMs: number, home: OceanHome, folder: string): Promise<OceanRegion> {
    const store = await RedisProcess.start({ hasMovableClock: true })
    const region = new OceanRegion(delayMs, store, await home.link(), await freePorts(1 + NODES), folder)
    await Promise.all(region.nodes.map((node) => node.start()))
    region.#balancer = await startBalancer(region.port, region.nodes, folder)
    return region
  }

  /** The link as it is, or slower, or one that loses answers with their connections. */
  across({ times = 1, lostShare = 0 } = {}): void {
    const delayMs = this.delayMs * times
    this.link.set({ kind: 'latency', delayMs, jitterMs: JITTER * delayMs, lostShare })
  }

  /** Puts another limit of the bucket in force. */
  change(limit: number): void {
    const policies = { ...OCEAN_POLICIES, bucket: { ...OCEAN_POLICIES.bucket, limit } }
    for (const node of this.nodes) node.change({ ...this.#settings, policies })
  }

  /** Steps the wall clock of its store. */
  stepClock(bySeconds: number): void {
    this.#aheadS += bySeconds
    if (bySeconds > 0) this.stepsAhead++
    this.store.moveClock(this.#aheadS)
  }

  async stop(): Promise<void> {
    await Promise.all([this.#balancer?.end(), ...this.nodes.map((node) => node[Symbol.asyncDispose]())])
    await Promise.all([this.link.stop(), this.store.stop()])
  }
}

/** Three regions with slow links to one home, all on loopback. */
export class Ocean {
  readonly folder = mkdtempSync(join(tmpdir(), 'sluicegate-ocean-'))
  readonly home: OceanHome
  readonly regions: OceanRegion[] = []

  private constructor(home: OceanHome) {
    this.home = home
  }

  static async start(): Promise<Ocean> {
    const ocean = new Ocean(await OceanHome.start())
    for (const delayMs of DELAYS_MS) ocean.regions.push(await OceanRegion.start(delayMs, ocean.home, ocean.folder))
    return ocean
  }

  get nodes(): readonly ServiceNode[] {
    return this.regions.flatMap(({ nodes }) => nodes)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.regions.map((region) => region.stop()))
    await this.home.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

interface Running {
  readonly perSecond: number
  readonly load: LabProcess
}

/** Load on one key of its own in each region, whose rates may change, with a record of all answers. */
export class OceanLoad {
  readonly #ocean: Ocean
  readonly #policy: OceanPolicy
  readonly #random: Random
  /** Nothing of its budget was spent before. */
  readonly #key: string
  readonly #running: (Running | undefined)[]
  readonly #records: string[][]
  readonly #results: LoadResult[] = []
  readonly #first: RecordedAnswer[] = []

  constructor(ocean: Ocean, policy: OceanPolicy, random: Random) {
    this.#ocean = ocean
    this.#policy = policy
    this.#random = random
    this.#key = `key-${random.integer(0, 2 ** 40)}`
    writeFileSync(this.#keyFile, `${this.#key}\n`)
    this.#running = ocean.regions.map(() => undefined)
    this.#records = ocean.regions.map(() => [])
  }

  /** One take of so many tokens: a budget that is nearly spent shows what is over it. */
  async drain(tokens: number): Promise<void> {
    const node = this.#random.pick(this.#ocean.nodes)
    const fromUs = machineUs()
    const { status } = await fetch(`${node.url}/v1/take?policy=${this.#policy}&key=${this.#key}&cost=${tokens}`)
    const answer = { fromUs, toUs: machineUs(), outcome: 'allowed', key: this.#key }
    if (status === 200) for (let i = 0; i < tokens; i++) this.#first.push(answer)
  }

  /** Requests a second by region, from now on. */
  async demand(rates: readonly number[]): Promise<void> {
    await Promise.all(rates.map((perSecond, i) => this.#change(i, perSecond)))
  }

  async stop(): Promise<void> {
    await this.demand(this.#ocean.regions.map(() => 0))
  }

  results(): readonly LoadResult[] {
    return this.#results
  }

  /** Of each region; call it when all has stopped. */
  answers(): RecordedAnswer[][] {
    const byRegion = this.#records.map((files) => files.flatMap(readRecord))
    byRegion[0]?.push(...this.#first)
    return byRegion
  }

  get #keyFile(): string {
    return join(this.#ocean.folder, `${this.#key}.keys`)
  }

  async #change(region: number, perSecond: number): Promise<void> {
    const before = this.#running[region]
    if ((before?.perSecond ?? 0) === perSecond) return
    this.#running[region] = perSecond === 0 ? undefined : await this.#start(region, perSecond)
    if (before === undefined) return
    before.load.child.kill('SIGINT')
    await before.load.ended
    if (before.load.stdout === '') throw new Error(`the load ended without a result: ${before.load.stderr}`)
    this.#results.push(JSON.parse(before.load.stdout) as LoadResult)
  }

  async #start(region: number, perSecond: number): Promise<Running> {
    const { port } = this.#ocean.regions[region] as Ocean['regions'][number]
    const files = this.#records[region] as string[]
    const record = join(this.#ocean.folder, `${region}-${this.#random.integer(0, 2 ** 40)}.record`)
    files.push(record)
    const seed = String(this.#random.integer(0, 2 ** 31))
    const requests = ['--rate', String(perSecond), '--arrivals', 'poisson', '--keys', `file:${this.#keyFile}`, '--seed', seed]
    const load = loadOn(port, this.#policy, record, requests)
    let hasEnded = false
    void load.ended.then(() => {
      hasEnded = true
    })
    await until('the load runs', () => {
      if (hasEnded) throw new Error(`the load ended: ${load.stderr}`)
      return existsSync(record)
    })
    return { perSecond, load }
  }
}
