import type { TierData } from 'sluicegate-config/tiers/tier-data.js'
import type { Tiers } from 'sluicegate-config/tiers/tiers.js'
import { OldestFirst } from './oldest-first.js'

/** Keys whose state is carried over when they are next used. Beyond that, the oldest start full. */
const MAX_MOVED = 1_000_000
/** A power of two: a map of a million that grows holds all up for 30 ms. */
const SHARDS = 64
/** Keys between two steps. */
const KEYS_OF_STEP = 16

/** Keys that may have state under another limit than the one that they have now. */
export class MovedKeys {
  /** By key the id of the limit under which it has state, which is empty for the policy's own. */
  readonly #shards: readonly OldestFirst<string>[] = Array.from({ length: SHARDS }, () => new OldestFirst())
  #size = 0
  /** Changes that are prepared: a key that takes its state along meanwhile may have been noted, or not yet. */
  #changes = 0

  get size(): number {
    return this.#size
  }

  /** A change is prepared: until {@link MovedKeys.changed} a key that is used stays noted. */
  changing(): void {
    this.#changes++
  }

  /** The change is in force, or was dropped. */
  changed(): void {
    this.#changes--
  }

  /**
   * Notes the keys that have another limit under `after`, in steps. What is noted is true at once, so the change may come later, or not at all. Keys by
   * a prefix are not noted.
   */
  *noting(before: Tiers | undefined, after: Tiers | undefined): Generator<void> {
    let looked = 0
    for (const data of differing(dataOf(before), dataOf(after))) {
      for (const key of data.exactKeys()) {
        const from = before?.idOf(key) ?? ''
        if (from !== (after?.idOf(key) ?? '')) this.#note(key, from)
        if (++looked % KEYS_OF_STEP === 0) yield
      }
    }
  }

  /** The id of the limit under which the key may have state, once: it has it under `now` afterwards. */
  take(key: string, now: string): string | undefined {
    const shard = this.#shardOf(key)
    const id = shard.get(key)
    if (id === undefined) return undefined
    if (this.#changes > 0) shard.set(key, now)
    else if (shard.delete(key)) this.#size--
    return id
  }

  /** Those that are noted now. */
  *keys(): Generator<string> {
    for (const shard of this.#shards) yield* Array.from(shard.keys())
  }

  /** A key that was not used since an earlier change has its state where it was before that. */
  #note(key: string, id: string): void {
    const shard = this.#shardOf(key)
    if (shard.has(key)) return
    shard.set(key, id)
    if (++this.#size <= MAX_MOVED) return
    shard.cutTo(shard.size - 1)
    this.#size--
  }

  /** By the ends of the key, where those of one list differ. */
  #shardOf(key: string): OldestFirst<string> {
    const { length } = key
    const number =
      length === 0
        ? 0
        : 31 * (key.charCodeAt(length - 1) + 7 * key.charCodeAt(length >> 1)) + key.charCodeAt(Math.max(0, length - 2)) + length
    return this.#shards[number & (SHARDS - 1)] as OldestFirst<string>
  }
}

function dataOf(tiers: Tiers | undefined): TierData[] {
  return tiers === undefined ? [] : [tiers.parts.keys, tiers.parts.fileData]
}

/** What is in one of the two: a million keys that are the same move nowhere. */
function differing(a: readonly TierData[], b: readonly TierData[]): TierData[] {
  return [...a.filter((each) => !b.includes(each)), ...b.filter((each) => !a.includes(each))]
}
