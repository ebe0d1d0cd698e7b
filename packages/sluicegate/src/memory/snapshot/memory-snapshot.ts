import { StoreError } from '../../errors.js'
import { isInteger } from '../../options/option-checks.js'
import { MOST_POLICIES } from '../../policy/all-of.js'
import { checkedPolicy } from '../../policy/checked-policy.js'
import type { Policy } from '../../policy/policy.js'
import { checkedName } from '../../policy/policy-options.js'
import type { OverflowBudget, SectionOptions } from '../core-memory.js'
import { isNewcomers, MOST_KEYS } from '../core-memory.js'
import type { OpenCore } from '../open-core.js'
import { type DescribedSection, SectionWords } from './section-words.js'
import { encodedSnapshot, invalidSnapshot } from './snapshot.js'

/** What restoring a memory needs to know before it reads the keys. */
export interface MemoryDescription {
  /** Of several policies as one: their name. */
  readonly allOf?: string
  readonly secret: readonly [number, number]
  readonly options: SectionOptions
  readonly sections: readonly DescribedSection[]
}

const MOST_LINES = MOST_KEYS
const MOST_PARTS = 3
const MOST_NUMBER = Number.MAX_SAFE_INTEGER

/**
 * The description in a snapshot, of which anything may be wrong.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function checkedDescription(description: Readonly<Record<string, unknown>>): MemoryDescription {
  const { allOf, secret, options, sections } = description as Partial<MemoryDescription>
  const isOne =
    Array.isArray(secret) &&
    secret.length === 2 &&
    secret.every((half) => isInteger(half, -(2 ** 31), 2 ** 31 - 1)) &&
    areOptions(options) &&
    Array.isArray(sections) &&
    isInteger(sections.length, 1, allOf === undefined ? 1 : MOST_POLICIES) &&
    [...sections].every(isSection) &&
    (allOf === undefined || isName(allOf))
  if (!isOne) throw invalidSnapshot('does not describe the tables of a limiter')
  const checked = (sections as MemoryDescription['sections']).map((section) => ({ ...section, policy: policyIn(section.policy) }))
  return { ...(description as unknown as MemoryDescription), sections: checked }
}

function areOptions(options: unknown): boolean {
  const { denyWhenFull, maxKeys, growTo, newcomers } = Object(options) as Partial<SectionOptions>
  const areKeys = (keys: unknown): boolean => keys === undefined || isInteger(keys, 1, MOST_KEYS)
  return typeof denyWhenFull === 'boolean' && areKeys(maxKeys) && areKeys(growTo) && isNewcomers(newcomers)
}

function isSection(section: unknown): boolean {
  const { lines, counters, overflow } = Object(section) as Partial<DescribedSection>
  const { limit, windowUs } = Object(overflow) as Partial<OverflowBudget>
  return (
    Array.isArray(lines) &&
    isInteger(lines.length, 1, MOST_PARTS) &&
    [...lines].every((each) => isInteger(each, 1, MOST_LINES)) &&
    isInteger(counters, 0, MOST_KEYS) &&
    isInteger(limit, counters === 0 ? 0 : 1, MOST_NUMBER) &&
    isInteger(windowUs, 0, MOST_NUMBER / 256)
  )
}

function policyIn(policy: unknown): Policy {
  try {
    const checked = checkedPolicy(policy)
    if (checked.policies === undefined) return checked
  } catch {
    // Below.
  }
  throw invalidSnapshot('has no policy in force')
}

function isName(name: unknown): boolean {
  try {
    return typeof name === 'string' && checkedName(name, '') === name
  } catch {
    return false
  }
}

/** Attempts before the snapshot gives up; each but the first follows a pause. */
const MOST_ATTEMPTS = 100

/** A section to save. */
export interface SnapshotSection {
  readonly open: OpenCore
  /** In force there. */
  readonly policy: () => Policy
}

/** The sections to save, and the description that goes with them. */
export interface SnapshotSubject extends Pick<MemoryDescription, 'allOf' | 'secret'> {
  readonly sections: readonly SnapshotSection[]
  readonly nowUs: () => number
}

/**
 * The keys of a limiter, while other threads continue. Each key is as it was at one moment; the policies in force do not change between the start and
 * the end.
 *
 * @throws {StoreError} `CONTENTION` when a key or the policies changed during every attempt.
 */
export function snapshotOf(subject: SnapshotSubject): Uint8Array {
  for (let lost = 0; lost < MOST_ATTEMPTS; lost++) {
    if (lost > 0) subject.sections[0]?.open.core.yieldAfter(lost)
    const snapshot = saved(subject)
    if (snapshot !== undefined) return snapshot
  }
  throw new StoreError(
    'CONTENTION',
    'other threads kept changing the limiter during the snapshot, which gave up after a bounded wait: call snapshot() again',
  )
}

/** One attempt. Undefined if a policy changed during it, or a key all the time. */
function saved({ sections, nowUs, ...about }: SnapshotSubject): Uint8Array | undefined {
  for (const { open } of sections) open.look()
  const epochs = sections.map(({ open }) => open.epoch())
  const described = sections.map(({ open, policy }) => new SectionWords(open).described(policy()))
  const options = new SectionWords((sections[0] as SnapshotSection).open).options
  const pieces: Uint8Array[] = []
  try {
    for (const { open } of sections) for (const piece of open.saveTable(nowUs())) pieces.push(piece)
  } catch (error) {
    if (error instanceof StoreError) return undefined
    throw error
  }
  if (!sections.every(({ open }, i) => open.epoch() === epochs[i])) return undefined
  return encodedSnapshot({ ...about, options, sections: described } satisfies MemoryDescription, pieces)
}
