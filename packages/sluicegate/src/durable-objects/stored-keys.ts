import { areSame, ByteReader, ByteWriter } from '../memory/byte-codec.js'
import type { ObjectStorage } from './object-types.js'

/** Bytes of one entry: storage takes 128 KiB, its name included. */
const PIECE_BYTES = 100 * 1024
/** Entries that storage puts or deletes in one call. What is called in one turn is stored together. */
const MOST_AT_ONCE = 128

/** A key of a policy, of an `allOf` of one of its policies, as the core saves it. */
export interface StoredKey {
  readonly policy: string
  readonly key: string
  readonly saved: Uint8Array
  /** That it has, if it is not the policy's own. */
  readonly plan?: unknown
}

/** Where a key is stored: its number, and what stands in its entries. */
interface Place {
  readonly number: number
  readonly bytes: Uint8Array
}

/**
 * The keys of one policy in the storage of an object, each in an entry of its own, `name\nnumber`; what does not fit goes on in
 * `name\nnumber\n1` and so on:
 *
 *   bytes of what follows | policy, text | key, or key and plan, text of JSON, which may hold any UTF-16 | key as the core saves it
 */
export class StoredKeys {
  private readonly storage: ObjectStorage
  private readonly name: string
  private readonly places = new Map<string, Place>()
  /** Numbers below the next one that no key has. */
  private readonly free: number[] = []
  private next = 0
  private puts = new Map<string, Uint8Array>()
  private deletes: string[] = []

  constructor(storage: ObjectStorage, name: string) {
    this.storage = storage
    this.name = name
  }

  /** The keys in the entries of the storage, as far as they are whole. */
  read(entries: ReadonlyMap<string, unknown>): readonly StoredKey[] {
    const found: StoredKey[] = []
    for (const [entry, first] of entries) {
      const number = Number(entry.slice(this.name.length + 1))
      if (!entry.startsWith(`${this.name}\n`) || !Number.isSafeInteger(number) || !(first instanceof Uint8Array)) continue
      const bytes = joined([first, ...this.furtherPieces(entries, number)])
      this.next = Math.max(this.next, number + 1)
      const stored = decoded(bytes)
      if (stored === undefined) continue
      found.push(stored)
      this.places.set(placeOf(stored.policy, stored.key), { number, bytes })
    }
    const taken = new Set([...this.places.values()].map(({ number }) => number))
    for (let number = 0; number < this.next; number++) if (!taken.has(number)) this.free.push(number)
    return found
  }

  /** Stores a key as it is now, with the next {@link flush}; without what is saved: not at all. */
  write({ policy, key, saved, plan }: Omit<StoredKey, 'saved'> & { readonly saved?: Uint8Array | undefined }): void {
    const place = placeOf(policy, key)
    const known = this.places.get(place)
    if (saved === undefined) {
      if (known !== undefined) this.drop(place, known)
      return
    }
    const bytes = encoded({ policy, key, saved, plan })
    if (known !== undefined && areSame(known.bytes, bytes)) return
    const number = known?.number ?? this.free.pop() ?? this.next++
    const pieces = Math.ceil(bytes.length / PIECE_BYTES)
    for (let i = 0; i < pieces; i++) this.puts.set(this.entryOf(number, i), bytes.slice(i * PIECE_BYTES, (i + 1) * PIECE_BYTES))
    for (let i = pieces; i < Math.ceil((known?.bytes.length ?? 0) / PIECE_BYTES); i++) this.deletes.push(this.entryOf(number, i))
    this.places.set(place, { number, bytes })
  }

  /** Stores all that was written, together. @returns whether anything was. */
  flush(): boolean {
    const { puts, deletes } = this
    if (puts.size === 0 && deletes.length === 0) return false
    const entries = [...puts]
    for (let i = 0; i < entries.length; i += MOST_AT_ONCE) gated(this.storage.put(Object.fromEntries(entries.slice(i, i + MOST_AT_ONCE))))
    for (let i = 0; i < deletes.length; i += MOST_AT_ONCE) gated(this.storage.delete(deletes.slice(i, i + MOST_AT_ONCE)))
    this.puts = new Map()
    this.deletes = []
    return true
  }

  get size(): number {
    return this.places.size
  }

  /** The keys that are stored. */
  keys(): readonly Omit<StoredKey, 'saved'>[] {
    return [...this.places.keys()].map((place) => {
      const [policy = ''] = place.split('\n', 1)
      return { policy, key: place.slice(policy.length + 1) }
    })
  }

  /** Everything was deleted. */
  forget(): void {
    this.places.clear()
    this.free.length = 0
    this.next = 0
  }

  private drop(place: string, { number, bytes }: Place): void {
    this.places.delete(place)
    this.free.push(number)
    for (let i = 0; i * PIECE_BYTES < bytes.length; i++) {
      this.puts.delete(this.entryOf(number, i))
      this.deletes.push(this.entryOf(number, i))
    }
  }

  private entryOf(number: number, piece: number): string {
    return piece === 0 ? `${this.name}\n${number}` : `${this.name}\n${number}\n${piece}`
  }

  private *furtherPieces(entries: ReadonlyMap<string, unknown>, number: number): Generator<Uint8Array> {
    for (let i = 1; ; i++) {
      const piece = entries.get(this.entryOf(number, i))
      if (!(piece instanceof Uint8Array)) return
      yield piece
    }
  }
}

/** Names of policies have no such character. */
function placeOf(policy: string, key: string): string {
  return `${policy}\n${key}`
}

function encoded({ policy, key, saved, plan }: StoredKey): Uint8Array {
  const writer = new ByteWriter()
  writer.text(policy)
  writer.text(JSON.stringify(plan === undefined ? key : [key, plan]))
  writer.raw(saved)
  const content = writer.written()
  writer.block(content)
  return writer.written()
}

/** Undefined for what is cut, or none. */
function decoded(bytes: Uint8Array): StoredKey | undefined {
  try {
    const reader = new ByteReader(new ByteReader(bytes).block())
    const policy = reader.text()
    const [key, plan] = [JSON.parse(reader.text())].flat()
    return typeof key === 'string' ? { policy, key, saved: reader.rest(), plan } : undefined
  } catch {
    return undefined
  }
}

/** The runtime sees to a write that fails: see `save` of limiter-object.ts. */
export function gated(write: Promise<unknown>): void {
  write.catch(() => undefined)
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}
