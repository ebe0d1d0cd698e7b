import type { Answer } from '../answer.js'
import type { AlgorithmName, CalendarSpec, PolicySpec, SinglePolicySpec } from '../oracle/policy-spec.js'
import { oracleAnswers } from '../replay.js'
import type { Sequence, Step } from '../sequences/sequence.js'

// The form of a golden vector: plain JSON that any language can replay. Times are whole microseconds since the Unix epoch.

/** A policy in a vector: of a rate with `burst`, of a log with `slotBytes`, of concurrency `windowUs` is the time to live. */
export interface VectorPolicy {
  readonly limit: number
  readonly windowUs: number
  readonly burst?: number
  readonly slotBytes?: 4 | 8
  readonly calendar?: CalendarSpec
}

/** Of all-of: its policies, each with its algorithm. */
export interface VectorPolicies {
  readonly parts: readonly (VectorPolicy & { readonly algorithm: SinglePolicySpec['algorithm'] })[]
}

/** An answer in a vector; `"never"` stands for an infinite wait. A permit's verbs answer with `allowed` alone. */
export interface VectorAnswer {
  readonly allowed: boolean
  readonly remaining?: number
  /** Of `reserve` the wait. */
  readonly retryAfterMs?: number | 'never'
  readonly resetAfterMs?: number
}

/** What is done: one verb with its amount; `update` answers nothing. Bookings and permits have numbers, from 0 on. */
export type VectorCall =
  | { readonly take: number }
  | { readonly peek: number }
  | { readonly refund: number }
  | { readonly penalize: number }
  | { readonly blockUs: number }
  | { readonly reset: true }
  | { readonly update: VectorPolicy | VectorPolicies }
  | { readonly reserve: number }
  | { readonly settle: number; readonly actual: number }
  | { readonly cancel: number }
  | { readonly release: number }
  | { readonly heartbeat: number }

/**
 * A call at one time, or `times` calls `everyUs` apart from `atUs` on: then `admitted` counts those allowed and `answer` is the last
 * one's. With all-of about `keys`, one each part, else about one key.
 */
export type VectorStep = {
  readonly atUs: number
  readonly everyUs?: number
  readonly times?: number
  readonly keys?: readonly string[]
} & VectorCall

export type AnsweredStep = VectorStep & { readonly admitted?: number; readonly answer?: VectorAnswer }

export interface Vector<S extends VectorStep = VectorStep> {
  readonly name: string
  readonly policy: VectorPolicy | VectorPolicies
  readonly steps: readonly S[]
}

/** What answers a vector's calls: a limiter under test, or the oracle. */
export type VectorSubject = (sequence: Sequence) => readonly (Answer | undefined)[]

/** The vector with what `subject` answers to each step. */
export function answered(algorithm: AlgorithmName, vector: Vector, subject: VectorSubject = oracleAnswers): Vector<AnsweredStep> {
  const answers = subject(sequenceOfVector(algorithm, vector))
  let next = 0
  const steps = vector.steps.map((step) => {
    const own = answers.slice(next, next + (step.times ?? 1))
    next += own.length
    return answeredStep(bare(step), own)
  })
  return { name: vector.name, policy: vector.policy, steps }
}

function sequenceOfVector(algorithm: AlgorithmName, { policy, steps }: Vector): Sequence {
  return { policy: specOfVector(algorithm, policy), steps: steps.flatMap((step) => stepsOf(algorithm, step)) }
}

function stepsOf(algorithm: AlgorithmName, step: VectorStep): Step[] {
  const { atUs, everyUs = 0, times = 1, keys = 'k' } = step
  return Array.from({ length: times }, (_, i) => ({ atMs: (atUs + i * everyUs) / 1000, key: keys, end: 0, ...callOf(algorithm, step) }))
}

type Call = Step extends infer One ? (One extends Step ? Omit<One, 'atMs' | 'key' | 'end'> : never) : never

function callOf(algorithm: AlgorithmName, call: VectorCall): Call {
  if ('take' in call) return { verb: 'take', cost: call.take }
  if ('peek' in call) return { verb: 'peek', cost: call.peek }
  if ('reserve' in call) return { verb: 'reserve', cost: call.reserve }
  if ('refund' in call) return { verb: 'refund', tokens: call.refund }
  if ('penalize' in call) return { verb: 'penalize', tokens: call.penalize }
  if ('blockUs' in call) return { verb: 'block', durationMs: call.blockUs / 1000 }
  if ('reset' in call) return { verb: 'reset' }
  if ('update' in call) return { verb: 'update', policy: specOfVector(algorithm, call.update) }
  if ('settle' in call) return { verb: 'settle', booking: call.settle, actual: call.actual }
  if ('cancel' in call) return { verb: 'cancel', booking: call.cancel }
  if ('release' in call) return { verb: 'release', permit: call.release }
  return { verb: 'heartbeat', permit: call.heartbeat }
}

function specOfVector(algorithm: AlgorithmName, policy: VectorPolicy | VectorPolicies): PolicySpec {
  if ('parts' in policy) {
    return { algorithm: 'all-of', parts: policy.parts.map((part) => specOfVector(part.algorithm, part) as SinglePolicySpec) }
  }
  const { limit, windowUs, burst = limit, slotBytes = 8, calendar } = policy
  const windowMs = windowUs / 1000
  switch (algorithm) {
    case 'token-bucket':
    case 'gcra':
      return { algorithm, limit, windowMs, burst }
    case 'sliding-log':
      return { algorithm, limit, windowMs, slotBytes }
    case 'fixed-window':
      return calendar === undefined ? { algorithm, limit, windowMs } : { algorithm, limit, windowMs, calendar }
    case 'all-of':
      throw new TypeError('all-of has parts')
    default:
      return { algorithm, limit, windowMs }
  }
}

function answeredStep(step: VectorStep, answers: readonly (Answer | undefined)[]): AnsweredStep {
  const last = answers.at(-1)
  const answer = last === undefined ? {} : { answer: vectorAnswer(last) }
  if (step.times === undefined) return { ...step, ...answer }
  return { ...step, admitted: answers.filter((each) => each?.allowed).length, ...answer }
}

function vectorAnswer({ allowed = false, remaining, retryAfterMs, resetAfterMs }: Answer): VectorAnswer {
  if (remaining === undefined || retryAfterMs === undefined || resetAfterMs === undefined) return { allowed }
  return { allowed, remaining, retryAfterMs: retryAfterMs === Number.POSITIVE_INFINITY ? 'never' : retryAfterMs, resetAfterMs }
}

/** The step without the answers it may carry. */
function bare(step: AnsweredStep): VectorStep {
  const { admitted: _admitted, answer: _answer, ...rest } = step
  return rest
}
