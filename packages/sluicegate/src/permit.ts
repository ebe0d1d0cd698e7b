import type { Decision } from './decision.js'

/** The answer of a concurrency limiter: a decision, and what it holds until it is released. Of a denied one all of these do nothing. */
export interface Permit extends Decision {
  /** Gives back what the permit holds. False when it held nothing any more: released before, or expired. */
  release(): boolean
  /** Renews the permit for another `ttl` from now. False when it had expired or was released: somebody else may hold its place. */
  heartbeat(): boolean
  /** {@link Permit.release}, for `using`. */
  [Symbol.dispose](): void
}
