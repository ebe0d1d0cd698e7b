import type { Key } from 'sluicegate'
import type { Crew } from './crew.js'

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
