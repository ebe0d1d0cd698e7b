import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import type { Config } from './config/config.js'
import { allPolicies } from './config/domains.js'
import { ConfigError } from './config/fault.js'
import { filesOf } from './config/read-config.js'
import { type Engine, PolicyError } from './engine/engine.js'
import type { Log } from './log.js'

/** Where a configuration comes from, so that it can be read again. */
export interface ConfigSource {
  /** A file or folder. */
  readonly path: string
  /** Reads it, with what wins over it. Throws `ConfigError`. */
  read(): Config
}

/** What made the service read its configuration again; `primary` in a worker, whose primary process decides. */
export type ReloadTrigger = 'file' | 'SIGHUP' | 'admin' | 'primary'

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

/** A change must be the same at two looks, since a file may be half written at the first. */
const LOOK_MS = 1_000
/** Sections that take effect at a start only. */
const AT_START: readonly (keyof Config)[] = [
  'listen',
  'tls',
  'tokens',
  'clients',
  'stop',
  'storage',
  'throttle',
  'dashboard',
  'log',
  'snapshot',
  'processes',
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
  #started: Config
  #signature: string | undefined
  #seen: string | undefined
  #looking: NodeJS.Timeout | undefined
  #state: ReloadState = { succeeded: 0, failed: 0, lastSuccessMs: Date.now(), fault: undefined }

  constructor(source: ConfigSource, started: Config, engine: Engine, log: Log) {
    this.#source = source
    this.#started = started
    this.#engine = engine
    this.#log = log
    this.#signature = this.#look()
  }

  get state(): ReloadState {
    return this.#state
  }

  /** Another part of the service that takes effect with the policies: all are prepared before the first is put in force. */
  add(prepare: PrepareReload): void {
    this.#prepare.push(prepare)
  }

  /** Looks for changed files from now on. */
  watch(lookMs = LOOK_MS, reload = (): void => this.reload('file')): void {
    this.#looking = setInterval(() => this.#reloadIfChanged(reload), lookMs).unref()
  }

  stop(): void {
    clearInterval(this.#looking)
  }

  /**
   * Reads the configuration and puts it in force.
   *
   * @throws {ConfigError | PolicyError | RangeError} when it cannot be used. The one before is in force then.
   */
  reload(trigger: ReloadTrigger): void {
    this.prepare(trigger)()
  }

  /**
   * {@link Reloader.reload} in two steps: all that can fail, and the returned function, which puts the configuration in force.
   *
   * @throws as `reload`.
   */
  prepare(trigger: ReloadTrigger): () => void {
    this.#signature = this.#look()
    try {
      const config = this.#source.read()
      const policies = this.#engine.prepare(allPolicies(config))
      const commits = this.#prepare.map((prepare) => prepare(config))
      return () => {
        const changes = policies()
        for (const commit of commits) commit()
        this.#state = { ...this.#state, succeeded: this.#state.succeeded + 1, lastSuccessMs: Date.now(), fault: undefined }
        if (trigger === 'primary') return
        this.#log.info({ trigger, ...changes }, 'configuration reloaded')
        const waiting = AT_START.filter((section) => !isDeepStrictEqual(config[section], this.#started[section]))
        if (waiting.length > 0) this.#log.warn({ sections: waiting }, 'these sections take effect at the next start')
      }
    } catch (error) {
      if (isConfigFault(error)) this.fail(trigger, error)
      throw error
    }
  }

  /** Records that the changed configuration cannot be used. */
  fail(trigger: ReloadTrigger, { message }: Error): void {
    this.#state = { ...this.#state, failed: this.#state.failed + 1, fault: message }
    this.#log.error({ trigger, fault: message }, 'the changed configuration cannot be used: the one before stays in force')
  }

  #reloadIfChanged(reload: () => void): void {
    const signature = this.#look()
    const isSettled = signature === this.#seen
    this.#seen = signature
    if (!isSettled || signature === this.#signature) return
    try {
      reload()
    } catch (error) {
      if (!isConfigFault(error)) throw error
    }
  }

  /** What changes with every change of the files: their names, sizes, times and inodes. */
  #look(): string {
    const hash = createHash('sha256')
    try {
      for (const file of filesOf(this.#source.path)) {
        const { ino, size, mtimeMs, ctimeMs } = statSync(file)
        hash.update(JSON.stringify([file, ino, size, mtimeMs, ctimeMs]))
      }
    } catch (error) {
      hash.update(String(error))
    }
    return hash.digest('hex')
  }
}

/** Faults of a configuration; a RangeError is one that this machine has no memory for. */
export function isConfigFault(error: unknown): error is Error {
  return error instanceof ConfigError || error instanceof PolicyError || error instanceof RangeError
}
