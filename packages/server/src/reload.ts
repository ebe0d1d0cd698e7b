import { isDeepStrictEqual } from 'node:util'
import { type Config, SETTINGS } from 'sluicegate-config/config.js'
import { allPolicies } from 'sluicegate-config/domains.js'
import { ConfigError } from 'sluicegate-config/fault.js'
import { FileWatch } from 'sluicegate-config/file-watch.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { ConfigFile } from 'sluicegate-config/read-config.js'
import type { TierData } from 'sluicegate-config/tiers/tier-data.js'
import { loadTierFile, signatureOf } from 'sluicegate-config/tiers/tier-file.js'
import { findMoves } from 'sluicegate-config/tiers/tier-moves.js'
import { type Engine, PolicyError } from './engine/engine.js'
import type { PreparedChanges } from './engine/policy-changes.js'
import type { Log } from './log.js'
import type { Part, Prepared } from './part.js'

/** Where a configuration comes from, so that it can be read again. */
export interface ConfigSource {
  /** A file or folder. */
  readonly path: string
  /**
   * Reads it, or makes it of files that were read before, with what wins over it.
   *
   * @throws {ConfigError}
   */
  read(files?: readonly ConfigFile[]): Config
}

/** What made the service read its configuration again; `primary` in a worker, whose primary process decides. */
export type ReloadTrigger = 'file' | 'SIGHUP' | 'admin' | 'primary'

/** Prepares a new configuration for what takes effect with the policies; throws if it cannot be used. */
export type PrepareReload = (config: Config) => Prepared

/** A configuration that can be put in force in this process. */
export interface PreparedReload extends Required<Prepared> {
  /** What changes with every change of the data files that it was made of. */
  readonly data: string
}

/** What puts changed files in force. Rejects with a fault of the configuration. */
export interface WatchedReload {
  files(): Promise<void>
  /** Of tiers. */
  data(): Promise<void>
}

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

/**
 * Puts a changed configuration in force while the service runs: all of it, or nothing. After a fault the configuration before stays in force. Only policies
 * change; other sections wait for a restart, and the log says so.
 */
export class Reloader {
  readonly #source: ConfigSource
  readonly #engine: Engine
  readonly #log: Log
  readonly #prepareOthers: PrepareReload
  readonly #watch: FileWatch
  #started: Config
  /** With the data files as they are in force. */
  #policies: readonly PolicyConfig[]
  #dataSignature: string
  #dataSeen: string | undefined
  #isLoading = false
  #state: ReloadState = { succeeded: 0, failed: 0, lastSuccessMs: Date.now(), fault: undefined }

  /** @param prepareOthers the parts of the service beside the engine: all are prepared before the first is put in force. */
  constructor(source: ConfigSource, started: Config, engine: Engine, log: Log, prepareOthers: PrepareReload = () => ({ commit() {} })) {
    this.#source = source
    this.#started = started
    this.#engine = engine
    this.#log = log
    this.#prepareOthers = prepareOthers
    this.#watch = new FileWatch(source.path)
    this.#policies = allPolicies(started)
    this.#dataSignature = this.#lookAtData()
  }

  get state(): ReloadState {
    return this.#state
  }

  /** The part that looks for changed files, and calls what reloads them: by default this object itself. */
  watching(lookMs: number, reload: WatchedReload = { files: async () => this.reload('file'), data: () => this.reloadData('file') }): Part {
    let looking: NodeJS.Timeout | undefined
    return {
      name: 'files',
      ready: () => {
        looking = setInterval(() => this.#reloadIfChanged(reload), lookMs).unref()
      },
      drain: () => clearInterval(looking),
    }
  }

  /**
   * Reads the configuration and puts it in force.
   *
   * @throws {ConfigError | PolicyError | RangeError} when it cannot be used. The one before is in force then.
   */
  reload(trigger: ReloadTrigger): void {
    this.prepare(trigger).commit()
  }

  /**
   * {@link Reloader.reload} in two steps: all that can fail, and the one that puts the configuration in force.
   *
   * @param files those of the configuration, where they were read before.
   * @throws as `reload`.
   */
  prepare(trigger: ReloadTrigger, files?: readonly ConfigFile[]): PreparedReload {
    this.#watch.note()
    let made: PreparedChanges | undefined
    try {
      const config = this.#source.read(files)
      const configs = allPolicies(config)
      const policies = this.#engine.prepare(configs)
      made = policies
      const others = this.#prepareOthers(config)
      const data = lookAt(configs)
      const commit = (): void => {
        const changes = policies()
        others.commit()
        this.#policies = configs
        this.#dataSignature = data
        this.#succeeded()
        if (trigger === 'primary') return
        this.#log.info({ trigger, ...changes }, 'configuration reloaded')
        const waiting = SETTINGS.filter((section) => !isDeepStrictEqual(config[section], this.#started[section]))
        if (waiting.length > 0) this.#log.warn({ sections: waiting }, 'these sections take effect at the next start')
      }
      const discard = (): void => {
        others.discard?.()
        policies.discard()
      }
      return { commit, discard, data }
    } catch (error) {
      made?.discard()
      this.#failed(error, trigger)
      throw error
    }
  }

  /**
   * Reads the data files of tiers and puts them in force, all or nothing; the configuration itself stays as it is.
   *
   * Rejects with `ConfigError`, `PolicyError` or `RangeError` when one cannot be used. The ones before are in force then.
   */
  async reloadData(trigger: ReloadTrigger = 'file'): Promise<void> {
    const prepared = await this.prepareData(trigger)
    prepared?.commit()
  }

  /** {@link Reloader.reloadData} in two steps; undefined while another one is under way, or came into force meanwhile. */
  async prepareData(trigger: ReloadTrigger): Promise<PreparedReload | undefined> {
    if (this.#isLoading) return undefined
    this.#isLoading = true
    const data = this.#lookAtData()
    this.#dataSignature = data
    try {
      const before = this.#policies
      const loaded = new Map<string, TierData>()
      for (const file of filesOfTiers(before)) loaded.set(file, await loadTierFile(file))
      const configs = before.map((config) => withFileData(config, loaded))
      for (const [i, { tiers }] of configs.entries())
        if (tiers !== undefined && tiers !== before[i]?.tiers) await findMoves(before[i]?.tiers, tiers)
      // Another configuration came into force meanwhile, with the files as they are.
      if (before !== this.#policies) return undefined
      const policies = this.#engine.prepare(configs)
      const commit = (): void => {
        const changes = policies()
        this.#policies = configs
        this.#succeeded()
        if (trigger !== 'primary') this.#log.info({ trigger, files: [...loaded.keys()], ...changes }, 'tiers reloaded')
      }
      return { commit, discard: () => policies.discard(), data }
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

  /** Records that the changed configuration cannot be used. */
  fail(trigger: ReloadTrigger, { message }: Error): void {
    this.#state = { ...this.#state, failed: this.#state.failed + 1, fault: message }
    this.#log.error({ trigger, fault: message }, 'the changed configuration cannot be used: the one before stays in force')
  }

  #failed(error: unknown, trigger: ReloadTrigger): void {
    if (!isConfigFault(error)) throw error
    this.fail(trigger, error)
  }

  #reloadIfChanged({ files, data }: WatchedReload): void {
    if (this.#hasSettledData()) data().catch(unlessFault)
    if (this.#watch.hasSettledChange()) files().catch(unlessFault)
  }

  #hasSettledData(): boolean {
    const signature = this.#lookAtData()
    const isSettled = signature === this.#dataSeen
    this.#dataSeen = signature
    return isSettled && signature !== this.#dataSignature
  }

  #lookAtData(): string {
    return lookAt(this.#policies)
  }
}

/** A fault is in the log, in the metrics and on the page. */
function unlessFault(error: unknown): void {
  if (!isConfigFault(error)) throw error
}

/** What changes with every change of the data files. */
function lookAt(policies: readonly PolicyConfig[]): string {
  return filesOfTiers(policies).map(signatureOf).join('\n')
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
