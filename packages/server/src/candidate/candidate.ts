import type { Clock } from 'sluicegate'
import type { Config } from 'sluicegate-config/config.js'
import { allPolicies } from 'sluicegate-config/domains.js'
import { FileWatch } from 'sluicegate-config/file-watch.js'
import { readConfig } from 'sluicegate-config/read-config.js'
import { ended } from '../engine/policy-changes.js'
import { inSlices } from '../later-turns.js'
import type { Log } from '../log.js'
import type { Part, Prepared } from '../part.js'
import { isConfigFault } from '../reload.js'
import { type Diff, type LivePolicies, ShadowDiff } from './shadow-diff.js'

/** The candidate and where it differs, for metrics, the page and `/v1/diff`. */
export interface CandidateState extends Diff {
  /** Unix time in milliseconds since which is counted: when the candidate was last read. */
  readonly sinceMs: number
  /** Why the files cannot be used; the candidate before, if there was one, goes on. */
  readonly fault: string | undefined
}

/** What a {@link Candidate} is made with. */
export interface CandidateOptions {
  readonly clock: Clock | undefined
  readonly tracksKeys: boolean
  /** How often its files are looked at. */
  readonly watchMs: number
  /** Reads a configuration beside this thread, from the second reading on; left out: in this thread. */
  readonly load?: ((path: string) => Promise<Config>) | undefined
}

/** A configuration beside the one in force, read again when its files change. Its faults are reported and never stop the service. */
export class Candidate implements Part {
  readonly name = 'candidate'
  readonly follower: ShadowDiff
  readonly #path: string
  readonly #log: Log
  readonly #watch: FileWatch
  readonly #watchMs: number
  readonly #load: CandidateOptions['load']
  #looking: NodeJS.Timeout | undefined
  #last: Promise<void> = Promise.resolve()
  #isStopped = false
  #isLooking = false
  #sinceMs = Date.now()
  #fault: string | undefined

  constructor(path: string, log: Log, { watchMs, load, ...options }: CandidateOptions) {
    this.#load = load
    this.#path = path
    this.#log = log
    this.#watch = new FileWatch(path)
    this.#watchMs = watchMs
    this.follower = new ShadowDiff(options)
    try {
      ended(this.#using(readConfig(path)))
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Reads the candidate again with each change of the configuration in force, and so counts from zero. */
  reload(): Prepared {
    return { commit: () => void this.#readAgain() }
  }

  /** One after another, in slices. */
  #readAgain(): Promise<void> {
    this.#last = this.#last.then(async () => {
      await this.#watch.note()
      try {
        const config = await (this.#load?.(this.#path) ?? readConfig(this.#path))
        await inSlices(this.#using(config))
      } catch (error) {
        if (!this.#isStopped) this.#failed(error)
      }
    })
    return this.#last
  }

  *#using({ policies, domains }: Config): Generator<void> {
    yield* this.follower.using(allPolicies({ policies, domains }))
    this.#sinceMs = Date.now()
    this.#fault = undefined
    this.#log.info({ file: this.#path }, 'candidate read')
  }

  /** The one before stays. */
  #failed(error: unknown): void {
    if (!isConfigFault(error)) throw error
    this.#fault = error.message
    this.#log.error({ file: this.#path, fault: error.message }, 'the candidate cannot be used: decisions are not affected')
  }

  /** Looks for changed files from now on. */
  ready(): void {
    this.#looking = setInterval(() => void this.#look(), this.#watchMs).unref()
  }

  /** One look at a time: two of them would read one change twice, and what was counted in between would be lost. */
  async #look(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      if (await this.#watch.hasSettledChange()) await this.#readAgain()
    } finally {
      this.#isLooking = false
    }
  }

  /** Where it differs from the policies in force, with at most `keys` keys for each difference. */
  state(live: LivePolicies, keys: number): CandidateState {
    return { sinceMs: this.#sinceMs, fault: this.#fault, ...this.follower.diff(live, keys) }
  }

  drain(): void {
    clearInterval(this.#looking)
  }

  stop(): void {
    this.#isStopped = true
    this.drain()
    this.follower.close()
  }
}
