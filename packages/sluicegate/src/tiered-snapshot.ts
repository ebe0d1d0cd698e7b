import { checkedPolicy } from './checked-policy.js'
import { crc32 } from './crc32.js'
import { PolicyError } from './errors.js'
import type { Policy } from './policy.js'

/** A policy other than the limiter's own, with what counts for it: a limiter, a handle or a snapshot. */
export interface Tier<Counted> {
  readonly policy: Policy
  readonly counted: Counted
}

/** The snapshots of a tiered limiter, apart. */
export interface TieredSnapshot {
  readonly own: Uint8Array
  /** What `policyFor` may call the own policy by. */
  readonly ownAs: readonly Policy[]
  readonly tiers: readonly Tier<Uint8Array>[]
}

// Eight bytes of MAGIC; then chunks, each after its length as 64 bits, little-endian: the policies as JSON, the own snapshot, that
// of each tier in the order of the policies; last the CRC-32 of all before it.

const MAGIC = new TextEncoder().encode('SGTIERS1')
const LENGTH_BYTES = 8
const CRC_BYTES = 4

/** The snapshots as one. */
export function tieredSnapshot({ own, ownAs, tiers }: TieredSnapshot): Uint8Array {
  const policies = { ownAs, tiers: tiers.map(({ policy }) => policy) }
  const chunks = [new TextEncoder().encode(JSON.stringify(policies)), own, ...tiers.map(({ counted }) => counted)]
  const bytes = new Uint8Array(chunks.reduce((sum, { length }) => sum + LENGTH_BYTES + length, MAGIC.length) + CRC_BYTES)
  const view = new DataView(bytes.buffer)
  bytes.set(MAGIC)
  let at = MAGIC.length
  for (const chunk of chunks) {
    view.setBigUint64(at, BigInt(chunk.length), true)
    bytes.set(chunk, at + LENGTH_BYTES)
    at += LENGTH_BYTES + chunk.length
  }
  view.setUint32(at, crc32(bytes.subarray(0, at)), true)
  return bytes
}

/** Whether the bytes begin as a {@link tieredSnapshot} does. */
export function isTieredSnapshot(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => bytes[i] === byte)
}

/**
 * The snapshots apart; views into `bytes`, at any offset.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID` when something is missing, too much or damaged.
 */
export function untieredSnapshot(bytes: Uint8Array): TieredSnapshot {
  const [head = new Uint8Array(), own, ...snapshots] = chunksOf(bytes)
  const { ownAs, tiers } = parsedHead(head)
  if (own === undefined || snapshots.length !== tiers.length) throw damaged(bytes)
  return { own, ownAs, tiers: tiers.map((policy, i) => ({ policy, counted: snapshots[i] as Uint8Array })) }
}

function chunksOf(bytes: Uint8Array): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = bytes.length - CRC_BYTES
  if (end < MAGIC.length || crc32(bytes.subarray(0, end)) !== view.getUint32(end, true)) throw damaged(bytes)
  const chunks: Uint8Array[] = []
  let at = MAGIC.length
  while (at < end) {
    const from = at + LENGTH_BYTES
    const to = from <= end ? from + Number(view.getBigUint64(at, true)) : Number.POSITIVE_INFINITY
    if (to > end) throw damaged(bytes)
    chunks.push(bytes.subarray(from, to))
    at = to
  }
  return chunks
}

function parsedHead(head: Uint8Array): { readonly ownAs: readonly Policy[]; readonly tiers: readonly Policy[] } {
  let parsed: { readonly ownAs?: unknown; readonly tiers?: unknown }
  try {
    parsed = Object(JSON.parse(new TextDecoder().decode(head)))
  } catch {
    throw damaged(head)
  }
  return { ownAs: checkedPolicies(parsed.ownAs, head), tiers: checkedPolicies(parsed.tiers, head) }
}

function checkedPolicies(policies: unknown, head: Uint8Array): readonly Policy[] {
  if (!Array.isArray(policies)) throw damaged(head)
  return policies.map((policy) => checkedPolicy(policy, 'snapshot'))
}

function damaged(bytes: Uint8Array): PolicyError {
  return new PolicyError('SNAPSHOT_INVALID', 'snapshot', bytes, 'must be all the bytes that limiter.snapshot() gave')
}
