import { StoreError } from '../../errors.js'
import { isInteger } from '../../options/option-checks.js'
import { MOST_POLICIES } from '../../policy/all-of.js'
import type { Algorithm } from '../../policy/policy.js'
import { checkedName } from '../../policy/policy-options.js'
import type { SectionOptions } from '../core-memory.js'
import { isNewcomers, MOST_KEYS, PAGE_BYTES, SECTION_ALIGNMENT } from '../core-memory.js'
import type { OpenCore } from '../open-core.js'
import { SectionCopy } from './section-copy.js'
import { encodedSnapshot, invalidSnapshot, MemoryPieces } from './snapshot.js'

/** What restoring a memory needs to know before it reads the pieces. */
export interface MemoryDescription {
  /** Of several policies as one: their name. */
  readonly allOf?: string
  readonly bytes: number
  readonly secret: readonly [number, number]
  readonly options: SectionOptions
  readonly sections: readonly { readonly address: number; readonly algorithm: Algorithm }[]
}

const MOST_BYTES = 2 ** 32

/**
 * The description in a snapshot, of which anything may be wrong. Algorithms are compared with the policies later.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function checkedDescription(description: Readonly<Record<string, unknown>>): MemoryDescription {
  const { allOf, bytes, secret, options, sections } = description as Partial<MemoryDescription>
  const isOne =
    isInteger(bytes, PAGE_BYTES, MOST_BYTES) &&
    bytes % PAGE_BYTES === 0 &&
    Array.isArray(secret) &&
    secret.length === 2 &&
    secret.every((half) => isInteger(half, -(2 ** 31), 2 ** 31 - 1)) &&
    areOptions(options) &&
    Array.isArray(sections) &&
    isInteger(sections.length, 1, allOf === undefined ? 1 : MOST_POLICIES) &&
    sections.every((section, i) => isPlace(section?.address, i === 0 ? 0 : sections[i - 1].address + 1, bytes)) &&
    sections.every(({ algorithm }) => typeof algorithm === 'string') &&
    (allOf === undefined || isName(allOf))
  if (!isOne) throw invalidSnapshot('does not describe the memory of a limiter')
  return description as unknown as MemoryDescription
}

function areOptions(options: unknown): boolean {
  const { denyWhenFull, maxKeys, growTo, newcomers } = Object(options) as Partial<SectionOptions>
  const areKeys = (keys: unknown): boolean => keys === undefined || isInteger(keys, 1, MOST_KEYS)
  return typeof denyWhenFull === 'boolean' && areKeys(maxKeys) && areKeys(growTo) && isNewcomers(newcomers)
}

function isPlace(address: unknown, least: number, bytes: number): boolean {
  return isInteger(address, least, bytes) && address % SECTION_ALIGNMENT === 0
}

function isName(name: unknown): boolean {
  try {
    return typeof name === 'string' && checkedName(name, '') === name
  } catch {
    return false
  }
}

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
