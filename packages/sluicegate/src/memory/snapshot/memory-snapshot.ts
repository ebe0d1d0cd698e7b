import { StoreError } from '../../errors.js'
import type { Algorithm } from '../../policy/policy.js'
import type { OpenCore } from '../open-core.js'
import type { MemoryDescription } from './memory-description.js'
import { SectionCopy } from './section-copy.js'
import { encodedSnapshot, MemoryPieces } from './snapshot.js'

/** Copies that are begun before it is given up; each but the first after a pause. */
const MOST_COPIES = 100

/** A part of a memory that is to be copied. */
export interface SnapshotSection {
  readonly open: OpenCore
  readonly algorithm: Algorithm
}

/** What is to be copied, and what is told about it. */
export interface SnapshotSubject extends Pick<MemoryDescription, 'allOf' | 'secret'> {
  readonly sections: readonly SnapshotSection[]
}

/**
 * Copies the sections of a memory while other threads go on. In each section a key is copied as it stood at one moment; all are
 * copied under the policies that were in force from the beginning of the copy to its end.
 *
 * @throws {StoreError} `CONTENTION` when a key would not stand still for that, or policies changed again and again.
 */
export function snapshotOf(subject: SnapshotSubject): Uint8Array {
  for (let lost = 0; lost < MOST_COPIES; lost++) {
    if (lost > 0) subject.sections[0]?.open.core.yieldAfter(lost)
    const snapshot = copied(subject)
    if (snapshot !== undefined) return snapshot
  }
  throw new StoreError('CONTENTION', 'other threads kept changing what the snapshot was to hold; it was given up after a bounded wait')
}

/** Undefined: something changed that belongs together. */
function copied({ sections, ...about }: SnapshotSubject): Uint8Array | undefined {
  // Read before anything else and compared after everything else: all in between is of one policy.
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
  // After the tables: what has to be known before a key changes is known to the copy, if the change is.
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
