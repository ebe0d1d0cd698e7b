import type { Awaitable } from '../../awaitable.js'
import type { LimiterVerbs } from '../limiter-verbs.js'

/** How often a key has hit, as express-rate-limit is told. */
export interface HitCount {
  /** At least 1. It denies where this is above its `limit`. */
  readonly totalHits: number
  /** When the count begins anew; of what is denied, when it would pass. Undefined where that never is. */
  readonly resetTime: Date | undefined
}

/** More than any limit that is a number. */
export const BEYOND_ANY_LIMIT: number = Number.MAX_SAFE_INTEGER

/** Port: counts the hits of keys. It rejects with `StoreError` where it cannot know, and never makes a number up. */
export interface Hits {
  readonly limiter: LimiterVerbs
  /** One more, in one step. */
  hit(key: string): Awaitable<HitCount>
  /** How it stands, or undefined where nothing is known of the key. */
  seen(key: string): Awaitable<HitCount | undefined>
}
