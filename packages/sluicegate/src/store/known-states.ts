import type { CasState } from './cas-store.js'

/** Bytes of keys and states that are kept; of those not used of late, half. */
const MOST_KEPT_BYTES = 16 * 1024 * 1024
/** What a key takes beside its own characters and its value. */
const BYTES_BESIDE = 250
/** Larger values, of long logs, are read each time. */
const MOST_BYTES = 4096

/** Of the keys met last, about this many count. */
const REMEMBERED = 16

/**
 * The state that was seen last, of the keys that were used last: those used of late, and those used before them, which are forgotten together.
 * Forgetting the oldest key one by one would step over the places of all that left the map before it.
 */
export class KnownStates {
  private recent = new Map<string, CasState>()
  private earlier = new Map<string, CasState>()
  /** Of the recent ones. */
  private bytes = 0
  /** Of the keys met of late, the share that the store did not have. */
  private newShare = 0

  /** Whether a key that is not known is likely to be new to the store too: then it is written without a look. */
  get areOthersNew(): boolean {
    return this.newShare > 0.5
  }

  /** A key that was not known was met. */
  met(isNew: boolean): void {
    this.newShare += ((isNew ? 1 : 0) - this.newShare) / REMEMBERED
  }

  of(key: string): CasState | undefined {
    return this.recent.get(key) ?? this.earlier.get(key)
  }

  keep(key: string, state: CasState): void {
    if ((state.value?.length ?? 0) > MOST_BYTES) this.forget([key])
    else this.keepOne(key, state)
  }

  forget(keys: Iterable<string>): void {
    for (const key of keys) {
      const state = this.recent.get(key)
      if (state !== undefined) this.bytes -= bytesOf(key, state)
      this.recent.delete(key)
      this.earlier.delete(key)
    }
  }

  private keepOne(key: string, state: CasState): void {
    const before = this.recent.get(key)
    this.bytes += bytesOf(key, state) - (before === undefined ? 0 : bytesOf(key, before))
    this.recent.set(key, state)
    if (this.bytes <= MOST_KEPT_BYTES / 2) return
    this.earlier = this.recent
    this.recent = new Map()
    this.bytes = 0
  }
}

function bytesOf(key: string, { value }: CasState): number {
  return BYTES_BESIDE + 2 * key.length + (value?.length ?? 0)
}
