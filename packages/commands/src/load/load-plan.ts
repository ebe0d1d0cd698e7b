import type { ArrivalPlan } from './arrivals.js'
import type { KeyPlan } from './key-choice.js'

/** What a run of load does: plain data, which goes to other processes as JSON. */
export interface LoadPlan {
  readonly target: TargetPlan
  /** An open loop sends when requests are due; a closed one has callers that each wait for their answer. */
  readonly loop: { readonly kind: 'open'; readonly arrivals: ArrivalPlan } | { readonly kind: 'closed'; readonly callers: number }
  readonly keys: KeyPlan
  readonly durationMs: number
  /** How long the same load is sent before, without being measured. */
  readonly warmUpMs: number
  /** How long answers are awaited after the last request. */
  readonly graceMs: number
  readonly seed: number
  readonly processes: number
  /** A file that receives each answer as a line; undefined: none. */
  readonly record: string | undefined
}

export interface TargetPlan {
  readonly kind: 'http' | 'resp' | 'grpc' | 'memory' | 'redis'
  /** As given. */
  readonly url: string
  readonly policy: string | undefined
  readonly cost: number
  readonly connections: number
  readonly token: string | undefined
  /** For `memory` and `redis`: the file with the policy. */
  readonly config: string | undefined
  /** For `resp`: the rate of `CL.THROTTLE` in place of a policy, as `BURST COUNT PERIOD`. */
  readonly throttle: string | undefined
  /** For `grpc`: what `ShouldRateLimit` receives in place of a policy. `{key}` stands for the key. */
  readonly envoy: { readonly domain: string; readonly entries: readonly (readonly [key: string, value: string])[] } | undefined
}
