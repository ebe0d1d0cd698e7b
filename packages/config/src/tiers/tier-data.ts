import { KeyTable, type KeyTableArrays } from './key-table.js'
import { PrefixTable } from './prefix-rules.js'

/** What a key is given: a tier by its name, or its own limit. Equal targets are one. */
export interface TierTarget {
  /** `pro`; of a limit its numbers, which no name of a tier looks like. */
  readonly id: string
  readonly tier: string | undefined
  readonly limit: number | undefined
  readonly window: string | undefined
  readonly burst: number | undefined
  /** Where it was first given. */
  readonly line: number
  readonly column: number
  readonly path: string
  /** Keys that have it, where no prefix does; undefined with a prefix, which any number of keys can begin with. */
  readonly keys: number | undefined
}

/** See {@link TierData.parts}. */
export interface TierDataPart {
  readonly targets?: readonly TierTarget[]
  readonly rows?: number
  readonly exact?: KeyTableArrays
  readonly prefixes?: readonly (readonly [prefix: string, id: string])[]
}

/** The target as it is written, without what is known when all are read. */
export type WrittenTarget = Omit<TierTarget, 'id' | 'keys'>

/** The most keys and prefixes of a policy. */
const MAX_ROWS = 1_000_000
/** Different limits of a policy, tiers and own limits of keys together. Each has its own table. */
export const MAX_TARGETS = 500
/** Prefixes are found by length, one look for each. */
const MAX_PREFIX_LENGTHS = 32
const MAX_KEY_LENGTH = 1_024

/** Keys and prefixes with their targets: a key is found in constant time, then the longest prefix, by one look for each length that there is. */
export class TierData {
  readonly #targets: TierTarget[] = []
  readonly #indexById = new Map<string, number>()
  /** The index of the target of each key. */
  #exact = new KeyTable()
  readonly prefixes = new PrefixTable()
  #rows = 0

  /** Keys and prefixes. */
  get size(): number {
    return this.#rows
  }

  get targets(): readonly TierTarget[] {
    return this.#targets
  }

  /**
   * Gives `written` a target: `acme`, or `acme-*` for all keys that begin so; `\*` at the end is a star. Returns why that cannot be, undefined when it
   * can.
   */
  add(written: string, target: WrittenTarget): string | undefined {
    const isPrefix = written.endsWith('*') && !written.endsWith('\\*')
    const key = isPrefix ? written.slice(0, -1) : written.endsWith('\\*') ? `${written.slice(0, -2)}*` : written
    if (written === '') return 'the key is empty'
    if (key.length > MAX_KEY_LENGTH) return `the key must have at most ${MAX_KEY_LENGTH} characters`
    if (this.#rows >= MAX_ROWS) return `has more than ${MAX_ROWS} keys`
    const index = this.#indexOf(target, isPrefix)
    if (index === undefined) return `has more than ${MAX_TARGETS} different limits: give keys with the same limit a tier`
    if (isPrefix ? this.prefixes.has(key) : !this.#exact.add(key, index)) return `${shown(written)} is given more than once`
    if (isPrefix) {
      if (this.prefixes.lengths >= MAX_PREFIX_LENGTHS && !this.prefixes.hasLength(key.length))
        return `has prefixes of more than ${MAX_PREFIX_LENGTHS} different lengths`
      this.prefixes.add(key, (this.#targets[index] as TierTarget).id)
    }
    this.#rows++
    return undefined
  }

  /** What it is made of, to be sent to another thread: what is small or shared, then the prefixes, some at a time. */
  *parts(): Generator<TierDataPart> {
    yield { targets: this.#targets, rows: this.#rows, exact: this.#exact.arrays }
    for (const prefixes of inGroups(this.prefixes.entries())) yield { prefixes }
  }

  /** Adds a part of another one's {@link TierData.parts}. */
  take({ targets = [], rows = 0, exact, prefixes = [] }: TierDataPart): void {
    this.#targets.push(...targets)
    this.#rows += rows
    if (exact !== undefined) this.#exact = new KeyTable(exact)
    for (const [prefix, id] of prefixes) this.prefixes.add(prefix, id)
  }

  /** The target's id of a key that is given as such. */
  exact(key: string): string | undefined {
    const index = this.#exact.get(key)
    return index === undefined ? undefined : (this.#targets[index] as TierTarget).id
  }

  /** Keys that are given as such. */
  exactKeys(): Iterable<string> {
    return this.#exact.keys()
  }

  #indexOf(target: WrittenTarget, isPrefix: boolean): number | undefined {
    const { tier, limit, window, burst } = target
    const id = tier ?? `limit=${limit} window=${window ?? ''} burst=${burst ?? ''}`
    const known = this.#indexById.get(id)
    if (known === undefined) {
      if (this.#targets.length >= MAX_TARGETS) return undefined
      this.#indexById.set(id, this.#targets.length)
      return this.#targets.push({ ...target, id, keys: isPrefix ? undefined : 1 }) - 1
    }
    const { keys } = this.#targets[known] as TierTarget
    ;(this.#targets[known] as { keys: number | undefined }).keys = isPrefix || keys === undefined ? undefined : keys + 1
    return known
  }
}

/** Keys in a part: another thread reads one in less than a millisecond. */
const KEYS_OF_PART = 1_000

export function* inGroups<Item>(items: Iterable<Item>, size: number = KEYS_OF_PART): Generator<Item[]> {
  let group: Item[] = []
  for (const item of items) {
    group.push(item)
    if (group.length < size) continue
    yield group
    group = []
  }
  if (group.length > 0) yield group
}

function shown(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}...` : text)
}
