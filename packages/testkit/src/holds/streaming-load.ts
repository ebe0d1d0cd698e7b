import { fixedWindow, levels, tokenBucket } from '../../../sluicegate/dist/index.js'

/** Of all holds. */
export const TTL = '3s'
export const TTL_MS = 3_000
export const USERS = 8
/** What all may spend, and each user: less than they would. */
export const ORG = fixedWindow({ limit: 300_000, window: '30d', name: 'org' })
export const USER = tokenBucket({ limit: 240_000, window: '1m', burst: 20_000, name: 'user' })
export const LEVELS = levels({ org: ORG, user: USER })

/** What `streaming-process.ts` is started with. */
export interface StreamingStart {
  readonly url: string
  readonly streams: number
  readonly seed: number
  /** The files that it writes: what was spent, and its ledger. */
  readonly spends: string
  readonly records: string
}

/** Of one spend in its file: a reading of the monotonic clock in milliseconds, the user, tokens. */
export const SPEND_BYTES = 16

/** Tokens that were spent at a time. */
export interface Spend {
  readonly atMs: number
  readonly user: number
  readonly tokens: number
}

export function spendsIn(bytes: Buffer): readonly Spend[] {
  const spends: Spend[] = []
  for (let at = 0; at + SPEND_BYTES <= bytes.length; at += SPEND_BYTES) {
    spends.push({ atMs: bytes.readDoubleLE(at), user: bytes.readInt32LE(at + 8), tokens: bytes.readInt32LE(at + 12) })
  }
  return spends
}

/** The most by which any user was beyond the bucket, at any moment. */
export function mostOver(spends: readonly Spend[]): number {
  const left = new Map<number, { tokens: number; atMs: number }>()
  let most = 0
  for (const { atMs, user, tokens } of [...spends].sort((a, b) => a.atMs - b.atMs)) {
    const before = left.get(user) ?? { tokens: USER.burst, atMs }
    const refilled = Math.min(USER.burst, before.tokens + ((atMs - before.atMs) * USER.limit) / USER.windowMs)
    left.set(user, { tokens: refilled - tokens, atMs })
    most = Math.max(most, tokens - refilled)
  }
  return most
}
