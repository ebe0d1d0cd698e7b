import type { KeyPlan } from './key-choice.js'
import { SeededRandom } from './seeded-random.js'

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

/** When requests of an open loop are due. Rates are requests per second of all processes together. */
export type ArrivalPlan =
  | { readonly kind: 'constant'; readonly rate: number }
  /** Independent requests: exponential gaps. */
  | { readonly kind: 'poisson'; readonly rate: number }
  /** The rate grows or falls evenly over the run. */
  | { readonly kind: 'ramp'; readonly fromRate: number; readonly toRate: number; readonly overMs: number }
  /** `size` requests at once, as often as the rate demands. */
  | { readonly kind: 'burst'; readonly rate: number; readonly size: number }

/** The share of one process: it sends each `of`th request, beginning with number `index`. */
export interface ProcessShare {
  readonly index: number
  readonly of: number
}

/** The intended starts of one process, in order; none of them depends on how fast anything answers. */
export class Arrivals {
  readonly #plan: ArrivalPlan
  readonly #share: ProcessShare
  readonly #random: SeededRandom
  #sent = 0
  #atMs = 0

  constructor(plan: ArrivalPlan, share: ProcessShare, seed: number) {
    this.#plan = plan
    this.#share = share
    this.#random = new SeededRandom(seed)
  }

  /** Milliseconds from the start of the run to the next intended start; `Infinity` when no more are due. */
  next(): number {
    const { index, of } = this.#share
    const plan = this.#plan
    if (plan.kind === 'poisson') {
      // Poisson streams of the processes add up to one of the whole rate.
      this.#atMs += (-Math.log(1 - this.#random.fraction()) * 1_000 * of) / plan.rate
      return this.#atMs
    }
    const n = this.#sent++ * of + index
    if (plan.kind === 'constant') return (n * 1_000) / plan.rate
    if (plan.kind === 'burst') return (Math.floor(n / plan.size) * plan.size * 1_000) / plan.rate
    return rampMs(n, plan)
  }
}

/** When request `n` is due: the time at which `from t + (to - from) t^2 / 2T` reaches n. */
function rampMs(n: number, { fromRate, toRate, overMs }: Extract<ArrivalPlan, { kind: 'ramp' }>): number {
  const fromPerMs = fromRate / 1_000
  const growth = (toRate - fromRate) / 1_000 / overMs
  const root = fromPerMs * fromPerMs + 2 * growth * n
  if (root < 0) return Number.POSITIVE_INFINITY
  // The form that loses no digits, and that also works without growth.
  const sum = fromPerMs + Math.sqrt(root)
  return n === 0 ? 0 : (2 * n) / sum
}

/** What came of one request. An error is an answer that is no decision, or no answer. */
export type LoadOutcome = 'allowed' | 'denied' | 'error'

/** What receives the load. */
export interface LoadTarget {
  /** Sends one request. Never rejects: a failure is the outcome `error`, with its cause in {@link LoadTarget.errors}. */
  take(key: string): Promise<LoadOutcome>
  /** Failures by their text; at most {@link MAX_ERROR_TEXTS} texts. */
  readonly errors: ErrorTexts
  close(): Promise<void>
}

/** How the targets `memory` and `redis` are opened: by the service, which owns the engine. */
export type OpenEngine = (plan: TargetPlan) => Promise<LoadTarget>

const MAX_ERROR_TEXTS = 20
const MAX_ERROR_CHARACTERS = 200

/** Failures counted by their text, in bounded memory. */
export class ErrorTexts {
  readonly counts = new Map<string, number>()

  /** Counts the failure; returns the outcome that it is. */
  add(text: string): 'error' {
    const short = text.slice(0, MAX_ERROR_CHARACTERS)
    const name = this.counts.has(short) || this.counts.size < MAX_ERROR_TEXTS ? short : 'other errors'
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
    return 'error'
  }
}
