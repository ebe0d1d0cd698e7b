import type { Decision } from './decision.js'
import type { AllOfPolicy, ConcurrencyPolicy, Policy } from './policy/policy.js'

/** The answer of a concurrency limiter: a decision, and what it holds until it is released. Of a denied one all of these do nothing. */
export interface Permit extends Decision {
  /** Gives back what the permit holds. False when it held nothing any more, released before or expired, or its limiter was closed. */
  release(): boolean
  /**
   * Renews the permit for another `ttl` from now. False when it had expired or was released, when somebody else may hold its place, or
   * when its limiter was closed. Of several policies: false when it is for one of them, and those of the others are given back.
   */
  heartbeat(): boolean
  /** {@link Permit.release}, for `using`. */
  [Symbol.dispose](): void
}

/** What a take answers under a policy: a permit where concurrency is the policy or one of its parts, otherwise a decision. */
export type AnswerOf<P extends Policy> = P extends ConcurrencyPolicy
  ? Permit
  : P extends AllOfPolicy<infer Parts>
    ? Extract<Parts[number], ConcurrencyPolicy> extends never
      ? Decision
      : Permit
    : Decision
