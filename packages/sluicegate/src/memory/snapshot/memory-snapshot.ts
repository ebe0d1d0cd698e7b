import { StoreError } from '../../errors.js'
import type { Algorithm } from '../../policy/policy.js'
import type { OpenCore } from '../open-core.js'
import type { MemoryDescription } from './memory-description.js'
import { SectionCopy } from './section-copy.js'
import { encodedSnapshot, MemoryPieces } from './snapshot.js'

/** Attempts before the snapshot gives up; each but the first follows a pause. */
const MOST_COPIES = 100

/** A section to copy. */
export interface SnapshotSection {
  readonly open: OpenCore
  readonly algorithm: Algorithm
}

/** The sections to copy, and the description that goes with them. */
export interface SnapshotSubject extends Pick<MemoryDescription, 'allOf' | 'secret'> {
  readonly sections: readonly SnapshotSection[]
}

/**
 * Copies the sections of a memory while other threads continue. Each key is copied in its state at one moment; the policies in force do
 * not change between the start and the end of the copy.
 *
 * @throws {StoreError} `CONTENTION` when a key or the policies changed during every attempt.
 */
export function snapshotOf(subject: SnapshotSubject): Uint8Array {
  for (let lost = 0; lost < MOST_COPIES; lost++) {
    if (lost > 0) subject.sections[0]?.open.core.yieldAfter(lost)
    const snapshot = copied(subject)
    if (snapshot !== undefined) return snapshot
  }
  throw new StoreError(
    'CONTENTION',
    'other threads kept changing the limiter during the snapshot, which gave up after a bounded wait: call snapshot() again',
  )
}

/** One attempt. Undefined if related data changed during it. */
function copied({ sections, ...about }: SnapshotSubject): Uint8Array | undefined {
  // Read first and compared last: everything in between belongs to one policy.
  const epochs = sections.map(({ open }) => open.epoch())
  const isSame = (): boolean => sections.every(({ open }, i) => open.epoch() === epochs[i])
  const pieces = new MemoryPieces()
  const copies: SectionCopy[] = []
  for (const [i, { open }] of sections.entries()) {
    if (!open.core.migrateAll()) return undefined
    open.core.look()
    const copy = new SectionCopy(open, epochs[i] as number)
    if (!copy.tableTo(pieces, isSame)) return undefined
    copies.push(copy)
  }
  // Heads follow the tables: if the copy contains a change of a key, it also contains what the core writes before such a change.
  const heads = copies.flatMap((copy) => copy.heads())
  if (!isSame() || !sections.every(({ open }) => open.core.isWhole())) return undefined
  for (const { address, bytes } of heads) pieces.add(address, bytes)
  const description: MemoryDescription = {
    ...about,
    bytes: sections[0]?.open.memory.buffer.byteLength ?? 0,
    options: copies[0]?.options ?? { denyWhenFull: false },
    sections: sections.map(({ open, algorithm }) => ({ address: open.section, algorithm })),
  }
  return encodedSnapshot(description, [pieces.bytes])
}
