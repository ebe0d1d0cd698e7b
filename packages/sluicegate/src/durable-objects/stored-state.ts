import { areSame } from '../memory/byte-codec.js'
import type { ObjectStorage } from './object-types.js'

/** Bytes of one entry: storage takes 128 KiB, key included. */
const PIECE_BYTES = 100 * 1024
/** Entries that storage takes at once, one of which describes the others. */
const MOST_PIECES = 127

/** The largest snapshot that is stored. */
export const MOST_BYTES: number = PIECE_BYTES * MOST_PIECES

/** The snapshots of one policy in the storage of an object, in pieces. */
export class StoredState {
  private readonly storage: ObjectStorage
  private readonly name: string
  /** Those in storage. */
  private pieces: readonly Uint8Array[] = []
  private newAtMs = 0

  constructor(storage: ObjectStorage, name: string) {
    this.storage = storage
    this.name = name
  }

  /** What is stored; undefined where nothing is, or not all of it. */
  read(entries: ReadonlyMap<string, unknown>): { readonly snapshot: Uint8Array; readonly newAtMs: number } | undefined {
    const { count, newAtMs } = Object(entries.get(this.name)) as { readonly count?: number; readonly newAtMs?: number }
    if (count === undefined || newAtMs === undefined) return undefined
    const pieces = Array.from({ length: count }, (_, i) => entries.get(this.placeOf(i)))
    if (!pieces.every((piece) => piece instanceof Uint8Array)) return undefined
    this.pieces = pieces
    this.newAtMs = newAtMs
    return { snapshot: joined(pieces), newAtMs }
  }

  /** Stores a snapshot, all of it or nothing, by the pieces that have changed. */
  write(snapshot: Uint8Array, newAtMs: number): void {
    const pieces: Uint8Array[] = []
    for (let at = 0; at < snapshot.length; at += PIECE_BYTES) pieces.push(snapshot.slice(at, at + PIECE_BYTES))
    if (pieces.length > MOST_PIECES)
      throw new RangeError(`the state takes ${snapshot.length} bytes, and storage ${MOST_BYTES}: lower maxKeys`)
    const entries: Record<string, unknown> = {}
    for (const [i, piece] of pieces.entries()) {
      const before = this.pieces[i]
      if (before === undefined || !areSame(before, piece)) entries[this.placeOf(i)] = piece
    }
    // What has not changed is full no later than was stored.
    if (Object.keys(entries).length === 0 && pieces.length === this.pieces.length) return
    if (pieces.length !== this.pieces.length || newAtMs !== this.newAtMs) entries[this.name] = { count: pieces.length, newAtMs }
    this.pieces = pieces
    this.newAtMs = newAtMs
    gated(this.storage.put(entries))
  }

  /** Whether nothing is stored. */
  get isEmpty(): boolean {
    return this.pieces.length === 0
  }

  /** Everything was deleted. */
  forget(): void {
    this.pieces = []
    this.newAtMs = 0
  }

  private placeOf(piece: number): string {
    return `${this.name}\n${piece}`
  }
}

/** The runtime sees to a write that fails: see `save` of limiter-object.ts. */
export function gated(write: Promise<void>): void {
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
