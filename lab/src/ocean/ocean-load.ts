import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LoadResult } from 'sluicegate-commands/load/load-result.js'
import { type Random, until } from 'sluicegate-testkit'
import { type RecordedAnswer, readRecord } from '../admissions.js'
import { loadOn, machineUs } from '../lab-load.js'
import type { LabProcess } from '../lab-process.js'
import type { Ocean, OceanPolicy } from './ocean.js'

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

  get results(): readonly LoadResult[] {
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
