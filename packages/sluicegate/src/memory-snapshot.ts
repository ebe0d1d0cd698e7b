import { ENTRIES_PER_LINE, TABLE_OFFSET } from './core-memory.js'
import { StoreError } from './errors.js'
import type { OpenCore } from './open-core.js'
import type { Algorithm } from './policy.js'
import { SnapshotWriter } from './snapshot.js'

const ENTRY_BYTES = 16
const LINE_BYTES = 64
/** Where descriptors of swaps lie: no ticket of theirs is copied. */
const DESCRIPTORS_OFFSET = 102_400
const MAX_TRIES = 10_000
/** The highest byte of such a word. */
const TICKET_BYTE = 0xc0

/** What restoring needs to know before it reads the pieces. */
export interface MemoryDescription {
  /** Of several policies as one: their name. */
  readonly allOf?: string
  readonly bytes: number
  readonly secret: readonly [number, number]
  readonly sections: readonly { readonly address: number; readonly algorithm: Algorithm }[]
}

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
 * Copies the sections of a memory while other threads go on. Each entry is copied as it stood at one moment: all that belongs to
 * it was the same before and after, and its state word says so.
 *
 * @throws {StoreError} `CONTENTION` when an entry would not stand still for that, or the policy changed again and again.
 */
export function snapshotOf({ sections, ...about }: SnapshotSubject): Uint8Array {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const description: MemoryDescription = {
      ...about,
      bytes: sections[0]?.open.memory.buffer.byteLength ?? 0,
      sections: sections.map(({ open, algorithm }) => ({ address: open.section, algorithm })),
    }
    const writer = new SnapshotWriter(description)
    if (sections.every(({ open }) => isCopied(open, writer))) return writer.finish()
  }
  throw contended()
}

/** False: another policy was put in force meanwhile. */
function isCopied(section: OpenCore, writer: SnapshotWriter): boolean {
  section.core.sweepAll()
  const before = section.epoch()
  const bytes = new Uint8Array(section.memory.buffer)
  writer.add(section.section, bytes.slice(section.section, section.section + DESCRIPTORS_OFFSET))
  const block = section.core.policyBlock()
  const stride = section.field(block, 'BLOCK_STRIDE')
  const companions = section.field(block, 'BLOCK_COMPANIONS')
  const table = section.section + TABLE_OFFSET
  for (let line = 0; line < section.lines; line++)
    copyLine(bytes, writer, table + line * LINE_BYTES, companions + line * ENTRIES_PER_LINE * stride, stride)
  return section.epoch() === before
}

function copyLine(bytes: Uint8Array, writer: SnapshotWriter, at: number, companions: number, stride: number): void {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const line = bytes.slice(at, at + LINE_BYTES)
    if (line.every((byte) => byte === 0)) return
    const beside = bytes.slice(companions, companions + usedEntries(line) * stride)
    const again = bytes.subarray(at, at + LINE_BYTES)
    if (hasTicket(line) || !line.every((byte, i) => byte === again[i])) continue
    writer.add(at, line)
    writer.add(companions, beside)
    return
  }
  throw contended()
}

/** How many entries of a line have ever been used: those before the first that is all zero. */
function usedEntries(line: Uint8Array): number {
  let used = ENTRIES_PER_LINE
  while (used > 0 && line.subarray((used - 1) * ENTRY_BYTES, used * ENTRY_BYTES).every((byte) => byte === 0)) used--
  return used
}

/** Whether some state word is one of several that are being swapped together. */
function hasTicket(line: Uint8Array): boolean {
  for (let entry = 0; entry < ENTRIES_PER_LINE; entry++)
    if ((line[entry * ENTRY_BYTES + ENTRY_BYTES - 1] as number) >= TICKET_BYTE) return true
  return false
}

function contended(): StoreError {
  return new StoreError('CONTENTION', 'other threads kept changing what the snapshot was to hold; it was given up after a bounded wait')
}
