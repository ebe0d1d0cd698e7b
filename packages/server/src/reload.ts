import { isDeepStrictEqual } from 'node:util'
import { type Config, SETTINGS } from 'sluicegate-config/config.js'
import { allPolicies } from 'sluicegate-config/domains.js'
import { ConfigError } from 'sluicegate-config/fault.js'
import { FileWatch } from 'sluicegate-config/file-watch.js'
import { type ConfigLoader, IN_THIS_THREAD } from 'sluicegate-config/load-config.js'
import { Looks } from 'sluicegate-config/looks.js'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { ConfigFile, Known } from 'sluicegate-config/read-config.js'
import type { TierData } from 'sluicegate-config/tiers/tier-data.js'
import { signatureNow, signatureOf } from 'sluicegate-config/tiers/tier-file.js'
import { type Engine, PolicyError } from './engine/engine.js'
import type { PreparedChanges } from './engine/policy-changes.js'
import { inSlices } from './later-turns.js'
import type { Log } from './log.js'
import type { Part, Prepared } from './part.js'

/** Where a configuration comes from, so that it can be read again. */
export interface ConfigSource {
  /** A file or folder. */
  readonly path: string
  /**
   * Reads it, or makes it of files that were read before, with what wins over it.
   *
   * @param known what stays in force where a file of it cannot be used now.
   * @throws {ConfigError}
   */
  read(files?: readonly ConfigFile[], known?: Known): Config
  /** The same beside this thread, for a service that has requests to answer, and data files of tiers; left out: in this thread. */
  readonly beside?: {
    read(files: readonly ConfigFile[] | undefined, known: Known): Promise<Config>
    /** A candidate. */
    readOther(path: string): Promise<Config>
    data: ConfigLoader['data']
  }
}

/** What made the service read its configuration again; `again` after a failure that may have passed, `primary` in a worker, whose primary process decides. */
export type ReloadTrigger = 'file' | 'again' | 'SIGHUP' | 'admin' | 'primary'

/** Prepares a new configuration for what takes effect with the policies; throws if it cannot be used. */
export type PrepareReload = (config: Config) => Prepared

/** A configuration that can be put in force in this process: one of the two methods is called, once. */
export interface PreparedReload {
  /** Does not fail. Others have their turn in between: with many policies some have their new numbers before others. */
  commit(): Promise<void>
  /** Closes what was made for it. */
  discard(): void
  /** What changes with every change of the data files that it was made of. */
  readonly data: string
  /** Certificates as this process has read them. */
  readonly tls: Config['tls']
}

/** What puts changed files in force. Rejects with a fault of the configuration. */
export interface WatchedReload {
  files(trigger: ReloadTrigger): Promise<void>
  /** Of tiers. */
  data(trigger: ReloadTrigger): Promise<void>
}

/** What reloading did, for metrics and the page. */
export interface ReloadState {
  readonly succeeded: number
  readonly failed: number
  /** Those among both that were tried again by themselves. */
  readonly again: number
  /** Unix time in milliseconds at which the configuration in force was read. */
  readonly lastSuccessMs: number
  /** Why the last attempt failed; undefined when it succeeded. */
  readonly fault: string | undefined
}

/** How often changed files are looked for. */
export const LOOK_MS = 1_000
/** Between a failure that may pass and the next attempt; doubled with each that fails. */
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 60_000

/** An attempt to come, of the configuration or of the data files. */
interface Retry {
  readonly what: keyof WatchedReload
  readonly delayMs: number
  readonly atMs: number
}

/**
 * Puts a changed configuration in force while the service runs: all of it, or nothing. After a fault the configuration before stays in force, and
 * where the reason may pass (a file that is not there yet) it is tried again. Policies, certificates, tokens, prices and the webhook change; other sections wait for a
 * restart, and the log says so.
 */
export class Reloader {
  readonly #source: ConfigSource
  readonly #engine: Engine
  readonly #log: Log
  readonly #prepareOthers: PrepareReload
  readonly #watch: FileWatch
  readonly #dataLooks = new Looks()
  readonly #started: Config
  #tls: Config['tls']
  /** With the data files as they are in force. */
  #policies: readonly PolicyConfig[]
  #dataSignature: string
  #dataSeen: string | undefined
  #isLooking = false
  #last: Promise<unknown> = Promise.resolve()
  /** One that has not begun. */
  #next: Promise<void> | undefined
  #retry: Retry | undefined
  #state: ReloadState = { succeeded: 0, failed: 0, again: 0, lastSuccessMs: Date.now(), fault: undefined }

  /** @param prepareOthers the parts of the service beside the engine: all are prepared before the first is put in force. */
  constructor(source: ConfigSource, started: Config, engine: Engine, log: Log, prepareOthers: PrepareReload = () => ({ commit() {} })) {
    this.#source = source
    this.#started = started
    this.#tls = started.tls
    this.#engine = engine
    this.#log = log
    this.#prepareOthers = prepareOthers
    this.#watch = new FileWatch(source.path, besideOf(started))
    this.#policies = allPolicies(started)
    this.#dataSignature = filesOfTiers(this.#policies).map(signatureOf).join('\n')
  }

  get state(): ReloadState {
    return this.#state
  }

  /** Certificates in force. */
  get tls(): Config['tls'] {
    return this.#tls
  }

  /** The part that looks for changed files, and calls what reloads them: by default this object itself. */
  watching(
    lookMs: number,
    reload: WatchedReload = { files: (trigger) => this.reload(trigger), data: (trigger) => this.reloadData(trigger) },
  ): Part {
    let looking: NodeJS.Timeout | undefined
    return {
      name: 'files',
      ready: () => {
        looking = setInterval(() => void this.#reloadIfChanged(reload), lookMs).unref()
      },
      drain: () => clearInterval(looking),
    }
  }

  /**
   * Reads the configuration and puts it in force; one after another. All calls while one is under way are one call after it.
   *
   * Rejects with `ConfigError`, `PolicyError` or `RangeError` when it cannot be used. The one before is in force then.
   */
  reload(trigger: ReloadTrigger): Promise<void> {
    this.#next ??= this.#inTurn(async () => {
      this.#next = undefined
      await (await this.prepare(trigger)).commit()
    })
    return this.#next
  }

  /**
   * {@link Reloader.reload} in two steps: all that can fail, and the one that puts the configuration in force. Not while another one is between the two.
   *
   * @param files those of the configuration, where they were read before, and the certificates.
   */
  async prepare(trigger: ReloadTrigger, files?: readonly ConfigFile[], tls?: Config['tls']): Promise<PreparedReload> {
    if (trigger !== 'again') this.#retry = undefined
    let made: PreparedChanges | undefined
    try {
      await this.#watch.note()
      const known = { tls: tls ?? this.#tls }
      const read = await (this.#source.beside ?? this.#source).read(files, known)
      const config = tls === undefined ? read : { ...read, tls }
      const configs = allPolicies(config)
      const policies = await inSlices(this.#engine.preparing(configs))
      made = policies
      const others = this.#prepareOthers(config)
      const data = await this.#lookAt(configs)
      const commit = async (): Promise<void> => {
        const changes = await inSlices(policies.inSteps(() => others.commit()))
        this.#policies = configs
        this.#dataSignature = data
        this.#tls = config.tls
        await this.#watch.with(besideOf(config))
        this.#succeeded(trigger, config.tls?.fault)
        if (trigger === 'primary') return
        this.#log.info({ trigger, ...changes }, 'configuration reloaded')
        const waiting = SETTINGS.filter((section) => !isDeepStrictEqual(waitsFor(section, config), waitsFor(section, this.#started)))
        if (waiting.length > 0) this.#log.warn({ sections: waiting }, 'these sections take effect at the next start')
        if (config.tls?.fault !== undefined)
          this.#log.error(
            { fault: config.tls.fault, againInMs: this.#retry?.delayMs },
            'the certificates cannot be used: the ones before stay in force',
          )
      }
      const discard = (): void => {
        others.discard?.()
        policies.discard()
      }
      return { commit, discard, data, tls: config.tls }
    } catch (error) {
      made?.discard()
      this.#failed(error, trigger, 'files')
      throw error
    }
  }

  /**
   * Reads the data files of tiers and puts them in force, all or nothing; the configuration itself stays as it is.
   *
   * Rejects with `ConfigError`, `PolicyError` or `RangeError` when one cannot be used. The ones before are in force then.
   */
  reloadData(trigger: ReloadTrigger = 'file'): Promise<void> {
    return this.#inTurn(async () => (await this.prepareData(trigger)).commit())
  }

  /** {@link Reloader.reloadData} in two steps. */
  async prepareData(trigger: ReloadTrigger): Promise<PreparedReload> {
    if (trigger !== 'again') this.#retry = undefined
    const data = await this.#lookAt(this.#policies)
    this.#dataSignature = data
    try {
      const before = this.#policies
      const loaded = await (this.#source.beside ?? IN_THIS_THREAD).data(filesOfTiers(before))
      const configs = before.map((config) => withFileData(config, loaded))
      const policies = await inSlices(this.#engine.preparing(configs))
      const commit = async (): Promise<void> => {
        const changes = await inSlices(policies.inSteps())
        this.#policies = configs
        this.#succeeded(trigger)
        if (trigger !== 'primary') this.#log.info({ trigger, files: [...loaded.keys()], ...changes }, 'tiers reloaded')
      }
      return { commit, discard: () => policies.discard(), data, tls: this.#tls }
    } catch (error) {
      this.#failed(error, trigger, 'data')
      throw error
    }
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const turn = this.#last.then(step)
    this.#last = turn.catch(() => undefined)
    return turn
  }

  /** @param fault of certificates, where the rest is in force. */
  #succeeded(trigger: ReloadTrigger, fault?: string): void {
    const { succeeded, again } = this.#state
    this.#state = {
      ...this.#state,
      succeeded: succeeded + 1,
      again: again + (trigger === 'again' ? 1 : 0),
      lastSuccessMs: Date.now(),
      fault,
    }
    if (fault === undefined) this.#retry = undefined
    else this.#tryAgain('files')
  }

  /** Records that the changed configuration cannot be used. */
  fail(trigger: ReloadTrigger, error: Error, what: keyof WatchedReload = 'files'): void {
    if (error instanceof RangeError || (error instanceof ConfigError && error.mayPass)) this.#tryAgain(what)
    else this.#retry = undefined
    const { failed, again } = this.#state
    this.#state = { ...this.#state, failed: failed + 1, again: again + (trigger === 'again' ? 1 : 0), fault: error.message }
    this.#log.error(
      { trigger, fault: error.message, againInMs: this.#retry?.delayMs },
      'the changed configuration cannot be used: the one before stays in force',
    )
  }

  #tryAgain(what: keyof WatchedReload): void {
    const delayMs = this.#retry === undefined ? FIRST_RETRY_MS : Math.min(MAX_RETRY_MS, 2 * this.#retry.delayMs)
    this.#retry = { what, delayMs, atMs: performance.now() + delayMs }
  }

  #failed(error: unknown, trigger: ReloadTrigger, what: keyof WatchedReload): void {
    if (!isConfigFault(error)) throw error
    this.fail(trigger, error, what)
  }

  async #reloadIfChanged(reload: WatchedReload): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      const retry = this.#retry
      const isDue = retry !== undefined && performance.now() >= retry.atMs
      if (isDue) await reload[retry.what]('again').catch(unlessFault)
      if (await this.#hasSettledData()) await reload.data('file').catch(unlessFault)
      if (await this.#watch.hasSettledChange()) await reload.files('file').catch(unlessFault)
    } finally {
      this.#isLooking = false
    }
  }

  async #hasSettledData(): Promise<boolean> {
    const signature = await this.#lookAt(this.#policies)
    const isSettled = signature === this.#dataSeen
    this.#dataSeen = signature
    return isSettled && signature !== this.#dataSignature
  }

  /** What changes with every change of the data files. */
  #lookAt(policies: readonly PolicyConfig[]): Promise<string> {
    const files = filesOfTiers(policies)
    if (files.length === 0) return Promise.resolve('')
    return this.#dataLooks.look(async () => {
      const signatures: string[] = []
      for (const file of files) signatures.push(await signatureNow(file))
      return signatures.join('\n')
    })
  }
}

/** Files that a configuration names, read with it as a whole. */
function besideOf({ tls, prices }: Config): string[] {
  return [...(tls?.files ?? []), ...(prices === undefined ? [] : [prices.file])]
}

/** What of a section cannot change while the service runs. */
function waitsFor(section: (typeof SETTINGS)[number], config: Config): unknown {
  if (section === 'tokens' || section === 'prices' || section === 'webhook') return undefined
  if (section !== 'tls') return config[section]
  return config.tls && { clients: config.tls.clientCa !== undefined }
}

/** A fault is in the log, in the metrics and on the page. */
function unlessFault(error: unknown): void {
  if (!isConfigFault(error)) throw error
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
