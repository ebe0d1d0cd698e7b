import type { OracleKey } from '../oracle/oracle.js'
import type { PolicySpec } from '../oracle/policy-spec.js'

/** When, where and on what a step acts. */
export interface Place {
  /** The reading of the clock, in milliseconds. */
  readonly atMs: number
  readonly key: OracleKey
  /** Which end of the limiter is asked: 0 made it, others are attached to it. */
  readonly end: number
}

type PlainVerb =
  | { readonly verb: 'peek'; readonly cost: number }
  | { readonly verb: 'refund' | 'penalize'; readonly tokens: number }
  | { readonly verb: 'block'; readonly durationMs: number }
  | { readonly verb: 'reset' }

/** A step that leaves nothing to settle or release. */
export type PlainStep = Place & PlainVerb

/**
 * One call of a sequence. An update has no use for its key. A booking or a permit is meant by its number among those asked for so far,
 * from 0 on, counted round; where there is none yet, the step does nothing.
 */
export type Step = Place &
  (
    | PlainVerb
    | { readonly verb: 'take' | 'reserve'; readonly cost: number }
    | { readonly verb: 'update'; readonly policy: PolicySpec }
    | { readonly verb: 'settle'; readonly booking: number; readonly actual: number }
    | { readonly verb: 'cancel'; readonly booking: number }
    | { readonly verb: 'release' | 'heartbeat'; readonly permit: number }
  )

/** A policy and what happens to a few keys of it. */
export interface Sequence {
  readonly policy: PolicySpec
  readonly steps: readonly Step[]
}
