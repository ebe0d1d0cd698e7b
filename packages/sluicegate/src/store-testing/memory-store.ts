import type { CasOutcome, CasOutcomes, CasState, CasStore, CasSwap } from '../store/cas-store.js'
import { type Clock, preciseClock, tickerOf } from '../time/clock.js'

interface Entry {
  readonly value: Uint8Array
  readonly version: number
  readonly untilUs: number
}

/**
 * A store in this process's memory, with transactions: for tests, and to see what a store has to do.
 *
 * @param clock the store's own. @defaultValue `preciseClock()`
 * @example createLimiter(policy, { store: casStore(memoryStore()) })
 */
export function memoryStore({
  clock = preciseClock(),
}: {
  readonly clock?: Clock
} = {}): Required<Omit<CasStore, 'step' | 'connectionsOpened'>> {
  return new MemoryStore(clock)
}

class MemoryStore implements Required<Omit<CasStore, 'step' | 'connectionsOpened'>> {
  readonly name: string = 'memory'
  private readonly entries = new Map<string, Entry>()
  private readonly nowUs: () => number
  private last = 0

  constructor(clock: Clock) {
    const ticker = tickerOf(clock)
    this.nowUs = () => ticker.read()
  }

  async read(key: string): Promise<CasState> {
    return this.state(key)
  }

  async readAll(keys: readonly string[]): Promise<readonly CasState[]> {
    return keys.map((key) => this.state(key))
  }

  async swap(swap: CasSwap): Promise<CasOutcome> {
    const { swapped, states } = this.swapped([swap])
    return { swapped, state: states[0] as CasState }
  }

  async swapAll(swaps: readonly CasSwap[]): Promise<CasOutcomes> {
    return this.swapped(swaps)
  }

  async swapMany(swaps: readonly CasSwap[]): Promise<readonly CasOutcome[]> {
    return Promise.all(swaps.map((swap) => this.swap(swap)))
  }

  private swapped(swaps: readonly CasSwap[]): CasOutcomes {
    const swapped = swaps.every(({ key, version }) => this.state(key).version === version)
    if (swapped) {
      for (const { key, value, ttlMs } of swaps) {
        this.entries.set(key, { value: value.slice(), version: ++this.last, untilUs: this.nowUs() + ttlMs * 1000 })
      }
    }
    return { swapped, states: swaps.map(({ key }) => this.state(key)) }
  }

  private state(key: string): CasState {
    const nowUs = this.nowUs()
    const entry = this.entries.get(key)
    if (entry === undefined || entry.untilUs <= nowUs) {
      this.entries.delete(key)
      return { value: undefined, version: undefined, nowUs }
    }
    return { value: entry.value.slice(), version: entry.version, nowUs }
  }
}
