import { createHash } from 'node:crypto'
import type { OnFull } from 'sluicegate-config/table-size.js'

/** The keys of one policy, with the options of their table. */
export interface SavedPolicy {
  readonly name: string
  /** The id of the limit, for keys of a tier. */
  readonly tier?: string
  /** For keys of an earlier table that have not been used since: which, counted back from 1. */
  readonly former?: number
  /** For those, Unix time in milliseconds from which no key has state there. */
  readonly untilMs?: number
  readonly maxKeys: number | undefined
  /** Of a tier: keys that its table has room for, where they are not the policy's. */
  readonly room?: number
  readonly onFull: OnFull
  /** Unix time in milliseconds since which no configuration has had it; left out for one that is served. */
  readonly leftOutMs?: number
  /** As the library's `snapshot()` made them. */
  readonly bytes: Uint8Array
}

/** The name under which keys of `CL.THROTTLE` are saved; no policy has an empty name. */
export const CALL_RATES = ''

/** A file that is no snapshot, or not a whole one. */
export class SnapshotError extends Error {
  override readonly name = 'SnapshotError'
}

const MAGIC = Buffer.from('SLUICEGATE-SNAPSHOT 1\n')
const MAGIC_OF_ALL = Buffer.from('SLUICEGATE-SNAPSHOT ')
const LENGTH_BYTES = 4
const DIGEST_BYTES = 32
/** A digest of so many takes less than a millisecond. */
const PART_BYTES = 262_144

type Index = readonly (Omit<SavedPolicy, 'bytes'> & { readonly length: number })[]

/** The file of these policies, in parts: a head with their names, their bytes, and a digest of all of it. Parts are small: a digest takes its time. */
export function* snapshotParts(policies: readonly SavedPolicy[]): Generator<Uint8Array> {
  const index: Index = policies.map(({ bytes, ...saved }) => ({ ...saved, length: bytes.length }))
  const json = Buffer.from(JSON.stringify(index))
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32LE(json.length)
  const hash = createHash('sha256')
  for (const whole of [MAGIC, length, json, ...policies.map(({ bytes }) => bytes)]) {
    for (let at = 0; at < whole.length; at += PART_BYTES) {
      const part = whole.subarray(at, at + PART_BYTES)
      hash.update(part)
      yield part
    }
  }
  yield hash.digest()
}

/** Whether it never was a snapshot. One whose writing was cut off by a loss of power may be empty, or zeros. */
export function isAnotherFile(file: Buffer): boolean {
  return file.length > 0 && file[0] !== 0 && !file.subarray(0, MAGIC_OF_ALL.length).equals(MAGIC_OF_ALL)
}

/**
 * The policies in a file of {@link snapshotParts}.
 *
 * @throws {SnapshotError} for any other bytes.
 */
export function readSnapshot(file: Buffer): SavedPolicy[] {
  if (!file.subarray(0, MAGIC.length).equals(MAGIC)) throw new SnapshotError('is no snapshot of this version')
  const end = file.length - DIGEST_BYTES
  const start = MAGIC.length + LENGTH_BYTES
  if (end < start || !createHash('sha256').update(file.subarray(0, end)).digest().equals(file.subarray(end)))
    throw new SnapshotError('is damaged: its digest is another')
  const bodyAt = start + file.readUInt32LE(MAGIC.length)
  const index = JSON.parse(file.toString('utf8', start, bodyAt)) as Index
  let at = bodyAt
  return index.map(({ length, ...saved }) => {
    const bytes = file.subarray(at, at + length)
    at += length
    return { ...saved, bytes }
  })
}
