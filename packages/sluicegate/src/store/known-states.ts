import type { CasState } from './cas-store.js'

/** Keys whose last state is kept. */
const MOST_KEYS = 10_000
/** Larger values, of long logs, are read each time. */
const MOST_BYTES = 4096

/** The state that was seen last, of the keys that were used last. */
export class KnownStates {
  private readonly byKey = new Map<string, CasState>()

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
