import type { Decision, Key } from 'sluicegate'
import type { Crew } from './crew.js'

/** What came of one take, in milliseconds of this process's monotonic clock. */
export interface LoadedTake {
  readonly key: string
  readonly askedMs: number
  readonly answeredMs: number
  readonly decision: Decision
}

export interface FleetLoadOptions {
  readonly keys: readonly string[]
  /** Callers that ask one after another, each about the next key; default 4. */
  readonly callers?: number
  /** How long each rests between two takes; default 1. */
  readonly restMs?: number
}

/** Callers that ask a limiter all the time, until they are stopped; every answer is recorded. */
export class FleetLoad {
  readonly takes: LoadedTake[] = []
  /** What takes threw or rejected with. */
  readonly errors: unknown[] = []
  private readonly limiter: { take(key: string): Decision | Promise<Decision> }
  private readonly options: FleetLoadOptions
  private readonly callers: Promise<void>[] = []
  private readonly asking = new Map<number, Pick<LoadedTake, 'key' | 'askedMs'>>()
  private isOver = false

  constructor(limiter: FleetLoad['limiter'], options: FleetLoadOptions) {
    this.limiter = limiter
    this.options = options
    for (let caller = 0; caller < (options.callers ?? 4); caller++) this.callers.push(this.call(caller))
  }

  /** Resolves when every caller has had its last answer. */
  async stop(): Promise<void> {
    this.isOver = true
    await Promise.all(this.callers)
  }

  /** Takes that have not been answered. */
  get open(): Pick<LoadedTake, 'key' | 'askedMs'>[] {
    return [...this.asking.values()]
  }

  /** Takes that were asked for from some time on. */
  since(ms: number): LoadedTake[] {
    // They stand in the order of their answers.
    let first = this.takes.length
    while (first > 0 && (this.takes[first - 1] as LoadedTake).answeredMs >= ms) first--
    return this.takes.slice(first).filter(({ askedMs }) => askedMs >= ms)
  }

  /** The longest that a caller waited for an answer. */
  get slowestMs(): number {
    return this.takes.reduce((slowest, { askedMs, answeredMs }) => Math.max(slowest, answeredMs - askedMs), 0)
  }

  private async call(caller: number): Promise<void> {
    const { keys, restMs = 1 } = this.options
    for (let i = caller; !this.isOver; i++) {
      const key = keys[i % keys.length] as string
      const askedMs = performance.now()
      this.asking.set(caller, { key, askedMs })
      try {
        const decision = await this.limiter.take(key)
        this.takes.push({ key, askedMs, answeredMs: performance.now(), decision })
      } catch (error) {
        this.errors.push(error)
      }
      this.asking.delete(caller)
      await new Promise((resolve) => setTimeout(resolve, restMs))
    }
  }
}

/** No worker is without a turn for longer: about half a minute. */
const MOST_WAITS = 3000
const WAIT_MS = 10

/**
 * A crew that takes on one key without end, by a clock that moves only by command. Once a take that began at a moment was
 * denied, all that this moment has to give is given.
 */
export class EndlessDemand {
  readonly #stop = new Int32Array(new SharedArrayBuffer(4))
  readonly #deniedUs = new BigInt64Array(new SharedArrayBuffer(8))
  readonly #asking: Promise<readonly unknown[]>

  constructor(crew: Crew, key: Key, cost: number) {
    this.#asking = crew.ask({ kind: 'always-ask', key, cost, stop: this.#stop, deniedUs: this.#deniedUs })
  }

  /** Holds this thread until a take was denied that began at that reading of the clock. */
  awaitDenialAt(us: number): void {
    for (let wait = 0; wait < MOST_WAITS; wait++) {
      const seen = Atomics.load(this.#deniedUs, 0)
      if (Number(seen) >= us) return
      Atomics.wait(this.#deniedUs, 0, seen, WAIT_MS)
    }
    throw new Error('no worker asks any more')
  }

  /** Ends it; answers the readings by which takes passed, in order. */
  async end(): Promise<readonly number[]> {
    Atomics.store(this.#stop, 0, 1)
    const readings = (await this.#asking) as readonly (readonly number[])[]
    return readings.flat().sort((a, b) => a - b)
  }
}
