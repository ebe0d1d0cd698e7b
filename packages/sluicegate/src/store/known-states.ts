import type { CasState } from './cas-store.js'

/** Keys whose last state is kept. */
const MOST_KEYS = 10_000
/** Larger values, of long logs, are read each time. */
const MOST_BYTES = 4096

/** Of the keys met last, about this many count. */
const REMEMBERED = 16

/** The state that was seen last, of the keys that were used last. */
export class KnownStates {
  private readonly byKey = new Map<string, CasState>()
  /** Of the keys met of late, the share that the store did not have. */
  private newShare = 0

  /** Whether a key that is not known is likely to be new to the store too: then it is written without a look. */
  get areOthersNew(): boolean {
    return this.newShare > 0.5
  }

  /** Keys that were not known were met. */
  met(isNew: boolean): void {
    this.newShare += ((isNew ? 1 : 0) - this.newShare) / REMEMBERED
  }

  /** Undefined unless all are known. */
  of(keys: readonly string[]): readonly CasState[] | undefined {
    const states: CasState[] = []
    for (const key of keys) {
      const state = this.byKey.get(key)
      if (state === undefined) return undefined
      states.push(state)
    }
    return states
  }

  keep(keys: readonly string[], states: readonly CasState[]): void {
    for (const [i, key] of keys.entries()) {
      const state = states[i] as CasState
      this.byKey.delete(key)
      if ((state.value?.length ?? 0) <= MOST_BYTES) this.byKey.set(key, state)
    }
    for (const key of this.byKey.keys()) {
      if (this.byKey.size <= MOST_KEYS) break
      this.byKey.delete(key)
    }
  }

  forget(keys: readonly string[]): void {
    for (const key of keys) this.byKey.delete(key)
  }
}
