import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from 'sluicegate-testkit'
import { LabProcess } from './lab-process.js'

export const SLUICEGATE = fileURLToPath(new URL('../../packages/server/dist/main.js', import.meta.url))
const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1'

/** A policy that the nodes serve: a bucket, or a sliding window, which has no burst beyond its limit. */
export interface LabPolicy {
  readonly algorithm?: 'sliding-window'
  readonly limit: number
  readonly windowMs: number
  readonly burst: number
}

export interface NodeSettings {
  readonly policies: Readonly<Record<string, LabPolicy>>
  /** Addresses of a Redis Cluster, or of one server; undefined: keys in the memory of the node. */
  readonly redis: readonly string[] | string | undefined
  /** Where the budgets of all regions are, and the region of the node. */
  readonly home?: { readonly url: string; readonly region: string }
  readonly mode: 'leased' | 'exact'
}

/** Counters of one node over all its processes. */
export interface NodeCounters {
  readonly storeCalls: number
  /** That the home of regions answered. */
  readonly homeCalls: number
  readonly outageTokens: number
  readonly decisions: number
  /** Decisions that took longer than {@link SLOW_DECISION_MS}. */
  readonly slowDecisions: number
}

/** Five times the timeout of the store: a decision that takes longer waited for something without a bound. */
const SLOW_DECISION_MS = 500
const NO_COUNTS: NodeCounters = { storeCalls: 0, homeCalls: 0, outageTokens: 0, decisions: 0, slowDecisions: 0 }

/** `sluicegate serve` as a process that can crash, restart and change its configuration. */
export class ServiceNode {
  readonly name: string
  readonly port: number
  readonly #file: string
  readonly #clockFile: string
  #process: LabProcess | undefined
  #settings: NodeSettings
  /** Of processes that have ended. */
  #before = NO_COUNTS
  #latest = NO_COUNTS

  constructor(name: string, port: number, folder: string, settings: NodeSettings) {
    this.name = name
    this.port = port
    this.#settings = settings
    this.#file = join(folder, `${name}.yaml`)
    this.#clockFile = join(folder, `${name}.clock`)
    this.stepClock(0)
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  get counters(): NodeCounters {
    return sumOfCounters([this.#before, this.#latest])
  }

  /** Resolves when the node is ready. */
  async start(): Promise<void> {
    this.#write()
    const clock = { LD_PRELOAD: FAKETIME, FAKETIME_TIMESTAMP_FILE: this.#clockFile, FAKETIME_CACHE_DURATION: '1', DONT_FAKE_MONOTONIC: '1' }
    // Only its clock is stepped: the others run as installed.
    const started = new LabProcess(process.execPath, [SLUICEGATE, 'serve', '--config', this.#file], this.name === 'node-1' ? clock : {})
    this.#process = started
    let code: unknown
    void started.ended.then((ended) => {
      code = ended
    })
    await until(`${this.name} is ready`, async () => {
      if (code !== undefined) throw new Error(`${this.name} ended (${code}): ${started.stderr}`)
      return (await fetch(`${this.url}/readyz`).catch(() => undefined))?.status === 200
    })
  }

  async crash(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Ends as an orchestrator ends it: requests in flight are finished. */
  async stop(): Promise<void> {
    await this.#end('SIGTERM')
  }

  /** Puts other settings in force while it runs. */
  change(settings: NodeSettings): void {
    this.#settings = settings
    this.#write()
    this.#process?.child.kill('SIGHUP')
  }

  /** Sets its wall clock ahead of the machine's. The clock that never steps is left alone. */
  stepClock(bySeconds: number): void {
    writeFileSync(this.#clockFile, `${bySeconds < 0 ? '' : '+'}${bySeconds}s\n`)
  }

  /** Reads the counters of the running process. */
  async sample(): Promise<void> {
    const text = await fetch(`${this.url}/metrics`, { signal: AbortSignal.timeout(2_000) }).then(
      (response) => response.text(),
      () => undefined,
    )
    if (text === undefined) return
    const decisions = sumOf(text, 'sluicegate_decision_duration_seconds_count')
    this.#latest = {
      storeCalls: sumOf(text, 'sluicegate_store_calls_total'),
      homeCalls: sumOf(text, 'sluicegate_home_calls_total'),
      outageTokens: sumOf(text, 'sluicegate_outage_tokens_total'),
      decisions,
      slowDecisions: decisions - sumOf(text, 'sluicegate_decision_duration_seconds_bucket', `{le="${SLOW_DECISION_MS / 1_000}"}`),
    }
  }

  /** The keys with the most demand, and the number of their requests. */
  async hotKeys(): Promise<readonly { readonly key: string; readonly count: number }[]> {
    const top = new LabProcess(process.execPath, [SLUICEGATE, 'top', '--url', this.url, '--samples', '1', '--json'])
    await top.ended
    const sample = JSON.parse(top.stdout) as { policies: readonly { demand: readonly { key: string; count: number }[] }[] }
    return sample.policies[0]?.demand ?? []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('SIGKILL')
    rmSync(this.#file, { force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    await this.#process?.end(signal)
    this.#process = undefined
    this.#before = this.counters
    this.#latest = NO_COUNTS
  }

  #write(): void {
    const { policies, redis, mode, home } = this.#settings
    const place = typeof redis === 'string' ? { url: redis } : { nodes: redis }
    const storage = redis && { redis: { ...place, prefix: 'lab', ...(mode === 'exact' && { mode }) }, ...(home && { home }) }
    // JSON is YAML.
    const config = {
      listen: { http: `127.0.0.1:${this.port}` },
      ...(storage && { storage }),
      policies: Object.fromEntries(Object.entries(policies).map(([name, policy]) => [name, configOf(policy)])),
      dashboard: { keys: 'shown' },
      stop: { drain: '500ms' },
      log: { level: 'error' },
    }
    writeFileSync(this.#file, JSON.stringify(config))
  }
}

function configOf({ algorithm, limit, windowMs, burst }: LabPolicy): object {
  const numbers = { limit, window: `${windowMs}ms` }
  return algorithm === undefined ? { algorithm: 'token-bucket', ...numbers, burst } : { algorithm, ...numbers }
}

export function sumOfCounters(counters: readonly NodeCounters[]): NodeCounters {
  return counters.reduce(
    (sum, each) => ({
      storeCalls: sum.storeCalls + each.storeCalls,
      homeCalls: sum.homeCalls + each.homeCalls,
      outageTokens: sum.outageTokens + each.outageTokens,
      decisions: sum.decisions + each.decisions,
      slowDecisions: sum.slowDecisions + each.slowDecisions,
    }),
    NO_COUNTS,
  )
}

/** @param labels as Prometheus' text has them; default any. */
function sumOf(exposition: string, metric: string, labels?: string): number {
  let sum = 0
  for (const [, own = '', value] of exposition.matchAll(new RegExp(`^${metric}(\\{[^}]*\\})? (\\S+)$`, 'gm')))
    if (labels === undefined || own === labels) sum += Number(value)
  return sum
}
