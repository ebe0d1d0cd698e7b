import type { CasOutcome, CasOutcomes, CasState, CasStore, CasSwap } from '../../../sluicegate/dist/store/cas-store.js'
import { memoryStore } from '../../../sluicegate/dist/store-testing/index.js'
import type { Clock } from '../../../sluicegate/dist/time/clock-interface.js'

/** A store in memory that can lose its data. Versions of before are never used again. */
export class ForgetfulStore implements CasStore {
  readonly name = 'forgetful'
  private readonly clock: Clock
  private kept: ReturnType<typeof memoryStore>
  private life = 0

  constructor(clock: Clock) {
    this.clock = clock
    this.kept = memoryStore({ clock })
  }

  forget(): void {
    this.kept = memoryStore({ clock: this.clock })
    this.life++
  }

  async read(key: string): Promise<CasState> {
    return this.marked(await this.kept.read(key))
  }

  async swap(swap: CasSwap): Promise<CasOutcome> {
    const { swapped, state } = await this.kept.swap(this.unmarked(swap))
    return { swapped, state: this.marked(state) }
  }

  async swapAll(swaps: readonly CasSwap[]): Promise<CasOutcomes> {
    const { swapped, states } = await this.kept.swapAll(swaps.map((swap) => this.unmarked(swap)))
    return { swapped, states: states.map((state) => this.marked(state)) }
  }

  private marked(state: CasState): CasState {
    return state.version === undefined ? state : { ...state, version: `${this.life} ${state.version}` }
  }

  private unmarked(swap: CasSwap): CasSwap {
    if (swap.version === undefined) return swap
    const [life, version] = String(swap.version).split(' ').map(Number)
    return { ...swap, version: life === this.life ? version : -1 }
  }
}
