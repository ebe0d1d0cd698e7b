import { isDeepStrictEqual } from 'node:util'
import type { Config } from './config/config.js'
import { allPolicies } from './config/domains.js'
import { ConfigError } from './config/fault.js'
import { FileWatch } from './config/file-watch.js'
import type { PolicyConfig } from './config/policy-config.js'
import type { TierData } from './config/tiers/tier-data.js'
import { loadTierFile, signatureOf } from './config/tiers/tier-file.js'
import { findMoves } from './config/tiers/tier-moves.js'
import { type Engine, PolicyError } from './engine/engine.js'
import type { Log } from './log.js'

/** Where a configuration comes from, so that it can be read again. */
export interface ConfigSource {
  /** A file or folder. */
  readonly path: string
  /** Reads it, with what wins over it. Throws `ConfigError`. */
  read(): Config
}

/** Prepares a new configuration; throws if it cannot be used. The returned function puts it in force, and does not throw. */
export type PrepareReload = (config: Config) => () => void

/** What reloading did, for metrics and the page. */
export interface ReloadState {
  readonly succeeded: number
  readonly failed: number
  /** Unix time in milliseconds at which the configuration in force was read. */
  readonly lastSuccessMs: number
  /** Why the last attempt failed; undefined when it succeeded. */
  readonly fault: string | undefined
}

/** How often changed files are looked for. */
export const LOOK_MS = 1_000
/** Sections that take effect at a start only. */
const AT_START: readonly (keyof Config)[] = [
  'listen',
  'tls',
  'tokens',
  'clients',
  'stop',
  'storage',
  'throttle',
  'quotas',
  'dashboard',
  'log',
  'snapshot',
  'candidate',
]

/**
 * Puts a changed configuration in force while the service runs: all of it, or nothing. After a fault the configuration before stays in force. Only policies
 * change; other sections wait for a restart, and the log says so.
 */
export class Reloader {
  readonly #source: ConfigSource
  readonly #engine: Engine
  readonly #log: Log
  readonly #prepare: PrepareReload[] = []
  readonly #watch: FileWatch
  #started: Config
  #looking: NodeJS.Timeout | undefined
  /** With the data files as they are in force. */
  #policies: readonly PolicyConfig[]
  #dataSignature: string
  #dataSeen: string | undefined
  #isLoading = false
  #state: ReloadState = { succeeded: 0, failed: 0, lastSuccessMs: Date.now(), fault: undefined }

  constructor(source: ConfigSource, started: Config, engine: Engine, log: Log) {
    this.#source = source
    this.#started = started
    this.#engine = engine
    this.#log = log
    this.#watch = new FileWatch(source.path)
    this.#policies = allPolicies(started)
    this.#dataSignature = this.#lookAtData()
  }

  get state(): ReloadState {
    return this.#state
  }

  /** Another part of the service that takes effect with the policies: all are prepared before the first is put in force. */
  add(prepare: PrepareReload): void {
    this.#prepare.push(prepare)
  }

  /** Looks for changed files from now on. */
  watch(lookMs = LOOK_MS): void {
    this.#looking = setInterval(() => this.#reloadIfChanged(), lookMs).unref()
  }

  stop(): void {
    clearInterval(this.#looking)
  }

  /**
   * Reads the configuration and puts it in force.
   *
   * @throws {ConfigError | PolicyError | RangeError} when it cannot be used. The one before is in force then.
   */
  reload(trigger: 'file' | 'SIGHUP' | 'admin'): void {
    this.#watch.note()
    try {
      const config = this.#source.read()
      const configs = allPolicies(config)
      const policies = this.#engine.prepare(configs)
      const commits = this.#prepare.map((prepare) => prepare(config))
      const changes = policies()
      for (const commit of commits) commit()
      this.#policies = configs
      this.#dataSignature = this.#lookAtData()
      this.#succeeded()
      this.#log.info({ trigger, ...changes }, 'configuration reloaded')
      const waiting = AT_START.filter((section) => !isDeepStrictEqual(config[section], this.#started[section]))
      if (waiting.length > 0) this.#log.warn({ sections: waiting }, 'these sections take effect at the next start')
    } catch (error) {
      this.#failed(error, trigger)
      throw error
    }
  }

  /**
   * Reads the data files of tiers and puts them in force, all or nothing; the configuration itself stays as it is.
   *
   * Rejects with `ConfigError`, `PolicyError` or `RangeError` when one cannot be used. The ones before are in force then.
   */
  async reloadData(trigger: 'file' | 'admin' = 'file'): Promise<void> {
    if (this.#isLoading) return
    this.#isLoading = true
    this.#dataSignature = this.#lookAtData()
    try {
      const before = this.#policies
      const loaded = new Map<string, TierData>()
      for (const file of filesOfTiers(before)) loaded.set(file, await loadTierFile(file))
      const configs = before.map((config) => withFileData(config, loaded))
      for (const [i, { tiers }] of configs.entries())
        if (tiers !== undefined && tiers !== before[i]?.tiers) await findMoves(before[i]?.tiers, tiers)
      // Another configuration came into force meanwhile, with the files as they are.
      if (before !== this.#policies) return
      const changes = this.#engine.prepare(configs)()
      this.#policies = configs
      this.#succeeded()
      this.#log.info({ trigger, files: [...loaded.keys()], ...changes }, 'tiers reloaded')
    } catch (error) {
      this.#failed(error, trigger)
      throw error
    } finally {
      this.#isLoading = false
    }
  }

  #succeeded(): void {
    this.#state = { ...this.#state, succeeded: this.#state.succeeded + 1, lastSuccessMs: Date.now(), fault: undefined }
  }

  #failed(error: unknown, trigger: string): void {
    if (!isConfigFault(error)) throw error
    this.#state = { ...this.#state, failed: this.#state.failed + 1, fault: error.message }
    this.#log.error({ trigger, fault: error.message }, 'the changed configuration cannot be used: the one before stays in force')
  }

  #reloadIfChanged(): void {
    this.#reloadDataIfChanged()
    if (!this.#watch.hasSettledChange()) return
    try {
      this.reload('file')
    } catch (error) {
      if (!isConfigFault(error)) throw error
    }
  }

  #reloadDataIfChanged(): void {
    const signature = this.#lookAtData()
    const isSettled = signature === this.#dataSeen
    this.#dataSeen = signature
    if (!isSettled || signature === this.#dataSignature) return
    this.reloadData().catch((error: unknown) => {
      if (!isConfigFault(error)) throw error
    })
  }

  #lookAtData(): string {
    return filesOfTiers(this.#policies).map(signatureOf).join('\n')
  }
}

/** The data files of policies, each once. */
function filesOfTiers(policies: readonly PolicyConfig[]): string[] {
  return [...new Set(policies.flatMap(({ tiers }) => tiers?.file ?? []))]
}

function withFileData(config: PolicyConfig, loaded: ReadonlyMap<string, TierData>): PolicyConfig {
  const data = config.tiers?.file === undefined ? undefined : loaded.get(config.tiers.file)
  return data === undefined ? config : { ...config, tiers: config.tiers?.withFileData(data) }
}

/** Faults of a configuration; a RangeError is one that this machine has no memory for. */
export function isConfigFault(error: unknown): error is Error {
  return error instanceof ConfigError || error instanceof PolicyError || error instanceof RangeError
}
