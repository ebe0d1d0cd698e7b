import type { Key } from 'sluicegate'
import type { Crew } from './crew.js'
import type { Spent } from './history/sure-excess.js'

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

  /** Ends it; answers the takes that passed: the reading by which each was decided, in order, and what the clock showed afterwards. */
  async end(): Promise<readonly Spent[]> {
    Atomics.store(this.#stop, 0, 1)
    const passed = (await this.#asking) as readonly (readonly Spent[])[]
    return passed.flat().sort((a, b) => a.fromUs - b.fromUs)
  }
}

/**
 * The moment at which each take counted, in order. The clock may move on while a thread has read it and waits for a processor; for a key, time never
 * runs back, and the take then counts at the latest moment that others have changed the key. So it counts at one of these moments between its reading
 * and its end; where none is left, at its reading.
 *
 * @param momentsUs those at which one take is due, in order; several at one moment as often.
 */
export function countedAtUs(passed: readonly Spent[], momentsUs: readonly number[]): readonly number[] {
  const left = new Set(passed)
  const counted = momentsUs.flatMap((us) => {
    let next: Spent | undefined
    // Of several the one that has the fewest moments left.
    for (const take of left) if (take.fromUs <= us && us <= take.toUs && !(next !== undefined && next.toUs <= take.toUs)) next = take
    return next !== undefined && left.delete(next) ? [us] : []
  })
  return [...counted, ...Array.from(left, ({ fromUs }) => fromUs)].sort((a, b) => a - b)
}
