import { MOST_POLICIES } from '../../policy/all-of.js'
import type { Algorithm } from '../../policy/policy.js'
import { checkedName } from '../../policy/policy-options.js'
import { MOST_KEYS, PAGE_BYTES, SECTION_ALIGNMENT } from '../core-memory.js'
import { isNewcomers } from '../memory-size.js'
import type { SectionOptions } from './section-words.js'
import { invalidSnapshot } from './snapshot.js'

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
    isWhole(bytes, PAGE_BYTES, MOST_BYTES) &&
    bytes % PAGE_BYTES === 0 &&
    Array.isArray(secret) &&
    secret.length === 2 &&
    secret.every((half) => isWhole(half, -(2 ** 31), 2 ** 31 - 1)) &&
    areOptions(options) &&
    Array.isArray(sections) &&
    isWhole(sections.length, 1, allOf === undefined ? 1 : MOST_POLICIES) &&
    sections.every((section, i) => isPlace(section?.address, i === 0 ? 0 : sections[i - 1].address + 1, bytes)) &&
    sections.every(({ algorithm }) => typeof algorithm === 'string') &&
    (allOf === undefined || isName(allOf))
  if (!isOne) throw invalidSnapshot('does not describe the memory of a limiter')
  return description as unknown as MemoryDescription
}

function areOptions(options: unknown): boolean {
  const { denyWhenFull, maxKeys, growTo, newcomers } = Object(options) as Partial<SectionOptions>
  const areKeys = (keys: unknown): boolean => keys === undefined || isWhole(keys, 1, MOST_KEYS)
  return typeof denyWhenFull === 'boolean' && areKeys(maxKeys) && areKeys(growTo) && isNewcomers(newcomers)
}

function isPlace(address: unknown, least: number, bytes: number): boolean {
  return isWhole(address, least, bytes) && address % SECTION_ALIGNMENT === 0
}

function isName(name: unknown): boolean {
  try {
    return typeof name === 'string' && checkedName(name, '') === name
  } catch {
    return false
  }
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most
}
