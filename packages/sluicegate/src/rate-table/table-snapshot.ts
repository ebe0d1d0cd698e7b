import { ENTRIES_PER_LINE } from '../memory/core-memory.js'
import type { OpenCore } from '../memory/open-core.js'
import { decodedSnapshot, encodedSnapshot, invalidSnapshot } from '../memory/snapshot/snapshot.js'
import { LONGEST_NS } from './call-rate.js'

// A snapshot of a rate table: which entries were ever used, since searches end at the first that was not; and of each key that owes
// something its entry, its fingerprint and its debt. Nothing else of the memory is kept.

/** The table that a snapshot is of: its size, and the secret by which keys have their places. */
export interface TableDescription {
  readonly rateTable: true
  readonly maxKeys: number
  readonly growTo: number
  readonly secret: readonly [number, number]
  readonly takenUs: number
  /** The last part of the table in use, 0 to 2; later ones are not looked at. */
  readonly grown: number
}

const UNITS_PER_US = 2_000n
const LONGEST_UNITS = BigInt(LONGEST_NS) * 2n
const ENTRY_WORDS = 2
const WORD_BYTES = 8
/** Entry 4, fingerprint 8, debt 8. */
const KEY_BYTES = 20

// Words of an entry, see words.ts of the core.
const USED = 1n << 62n
const STATE_KIND = 1n
const KIND_SHIFT = 62n
const EPOCH_SHIFT = 59n
const EPOCH_MASK = 7n
const VALUE_MASK = (1n << 56n) - 1n
const FINGERPRINT_SHIFT = 16n
const MOST_FINGERPRINT = (1n << 48n) - 1n
/** A key that moves or changes all the time is left out after as many attempts: what it was charged meanwhile is lost. */
const MOST_READINGS = 100

/** The keys that owe something now, and what they owe. */
export function tableSnapshot(open: OpenCore, description: Omit<TableDescription, 'grown'>): Uint8Array {
  open.core.migrateAll()
  const { words, first, epoch, baseUnits } = placesIn(open)
  const grown = Number(Atomics.load(words, wordOf(open, 'GROWN')))
  const entries = entriesIn(open, grown)
  const nowUnits = BigInt(description.takenUs) * UNITS_PER_US
  const used = new Uint8Array(Math.ceil(entries / 8))
  const keys: { readonly entry: number; readonly fingerprint: bigint; readonly debt: bigint }[] = []
  for (let entry = 0; entry < entries; entry++) {
    const at = first + entry * ENTRY_WORDS
    let state = Atomics.load(words, at + 1)
    if (state === 0n) continue
    used[entry >> 3] = (used[entry >> 3] as number) | (1 << (entry & 7))
    let identity = Atomics.load(words, at)
    // A state and an identity belong together if the state is the same before and after.
    for (let reading = 0; reading < MOST_READINGS && Atomics.load(words, at + 1) !== state; reading++) {
      state = Atomics.load(words, at + 1)
      identity = Atomics.load(words, at)
    }
    const fingerprint = identity >> FINGERPRINT_SHIFT
    if (fingerprint === 0n || state >> KIND_SHIFT !== STATE_KIND || ((state >> EPOCH_SHIFT) & EPOCH_MASK) !== epoch) continue
    const debt = (state & VALUE_MASK) + baseUnits - nowUnits
    if (debt > 1n) keys.push({ entry, fingerprint, debt })
  }
  const view = new DataView(new ArrayBuffer(keys.length * KEY_BYTES))
  for (const [i, { entry, fingerprint, debt }] of keys.entries()) {
    view.setUint32(i * KEY_BYTES, entry, true)
    view.setBigUint64(i * KEY_BYTES + 4, fingerprint, true)
    view.setBigUint64(i * KEY_BYTES + 12, debt, true)
  }
  return encodedSnapshot({ ...description, grown }, [used, new Uint8Array(view.buffer)])
}

/**
 * The table that a snapshot is of, and its keys.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function tableInSnapshot(bytes: unknown): { readonly description: TableDescription; readonly contents: Uint8Array } {
  const { description, contents } = decodedSnapshot(bytes)
  const { rateTable, maxKeys, growTo, secret, takenUs, grown } = description as Partial<TableDescription>
  const isTable =
    rateTable === true &&
    Number.isInteger(maxKeys) &&
    Number.isInteger(growTo) &&
    Number.isSafeInteger(takenUs) &&
    [0, 1, 2].includes(grown as number) &&
    Array.isArray(secret) &&
    secret.length === 2 &&
    secret.every((half) => (half | 0) === half)
  if (!isTable) throw invalidSnapshot('is not of a rate table')
  return { description: description as unknown as TableDescription, contents }
}

/**
 * Writes the keys into a table of the same size that no thread uses yet, with what they still owe at `nowUs`.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function restoreTable(open: OpenCore, { takenUs, grown }: TableDescription, contents: Uint8Array, nowUs: number): void {
  const { words, first, epoch, baseUnits } = placesIn(open)
  const entries = entriesIn(open, grown)
  const usedBytes = Math.ceil(entries / 8)
  const keys = (contents.length - usedBytes) / KEY_BYTES
  if (!Number.isInteger(keys) || keys < 0) throw invalidSnapshot('is of a table of another size')
  const head = USED | (epoch << EPOCH_SHIFT)
  for (let entry = 0; entry < entries; entry++) {
    if ((((contents[entry >> 3] as number) >> (entry & 7)) & 1) === 1) words[first + entry * ENTRY_WORDS + 1] = head
  }
  const view = new DataView(contents.buffer, contents.byteOffset + usedBytes)
  const elapsed = BigInt(Math.max(0, nowUs - takenUs)) * UNITS_PER_US
  const nowUnits = BigInt(nowUs) * UNITS_PER_US - baseUnits
  let live = 0n
  for (let at = 0; at < keys * KEY_BYTES; at += KEY_BYTES) {
    const entry = view.getUint32(at, true)
    const fingerprint = view.getBigUint64(at + 4, true)
    const debt = view.getBigUint64(at + 12, true)
    const place = first + entry * ENTRY_WORDS
    const isKey = entry < entries && words[place + 1] === head && words[place] === 0n
    if (!isKey || fingerprint === 0n || fingerprint > MOST_FINGERPRINT || debt > LONGEST_UNITS + 1n) {
      throw invalidSnapshot('has keys that no table could have left')
    }
    if (debt - elapsed <= 1n) continue
    words[place] = fingerprint << FINGERPRINT_SHIFT
    words[place + 1] = head | (nowUnits + debt - elapsed)
    live++
  }
  words[wordOf(open, 'KEYS')] = live
  words[wordOf(open, 'GROWN')] = BigInt(grown)
}

/** Entries of the parts in use. */
function entriesIn(open: OpenCore, grown: number): number {
  const words = new BigUint64Array(open.memory.buffer)
  const [firstLines, secondLines] = [Number(words[wordOf(open, 'FIRST_LINES')]), Number(words[wordOf(open, 'SECOND_LINES')])]
  if (firstLines === 0 || grown === 2) return open.entries
  return (grown === 1 ? firstLines + secondLines : firstLines) * ENTRIES_PER_LINE
}

function wordOf(open: OpenCore, name: string): number {
  return (open.section + open.constant(name)) / WORD_BYTES
}

function placesIn(open: OpenCore): {
  readonly words: BigUint64Array
  readonly first: number
  readonly epoch: bigint
  readonly baseUnits: bigint
} {
  open.core.look()
  return {
    words: new BigUint64Array(open.memory.buffer),
    first: (open.section + open.constant('TABLE')) / WORD_BYTES,
    epoch: BigInt(open.epoch()) & EPOCH_MASK,
    baseUnits: BigInt(open.field(open.core.policyRecord(), 'RECORD_BASE_US')) * UNITS_PER_US,
  }
}
