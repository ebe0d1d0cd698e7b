import { Oracle, type OracleDecision } from './oracle.js'
import type { RateSpec } from './oracle-emission.js'

// The form of a golden vector: plain JSON that any language can replay. Times are whole microseconds since the Unix epoch.

/** A policy in a vector. */
export interface VectorPolicy {
  readonly limit: number
  readonly windowUs: number
  readonly burst: number
}

/** An answer in a vector; `"never"` stands for an infinite wait. */
export interface VectorAnswer {
  readonly allowed: boolean
  readonly remaining: number
  readonly retryAfterMs: number | 'never'
  readonly resetAfterMs: number
}

/** What is done: one verb with its amount; `update` answers nothing. */
export type VectorCall =
  | { readonly take: number }
  | { readonly peek: number }
  | { readonly refund: number }
  | { readonly penalize: number }
  | { readonly blockUs: number }
  | { readonly reset: true }
  | { readonly update: VectorPolicy }

/** A call at one time, or `times` calls `everyUs` apart from `atUs` on: then `admitted` counts those allowed and `answer` is the last one's. */
export type VectorStep = { readonly atUs: number; readonly everyUs?: number; readonly times?: number } & VectorCall

export type AnsweredStep = VectorStep & { readonly admitted?: number; readonly answer?: VectorAnswer }

export interface Vector<S extends VectorStep = VectorStep> {
  readonly name: string
  readonly policy: VectorPolicy
  readonly steps: readonly S[]
}

/** One call on one key: a limiter under test, or the oracle. Answers undefined to an update. */
export type VectorSubject = (call: VectorCall, atUs: number) => OracleDecision | undefined

/** The vector with what `subject` answers to each step. */
export function answered(vector: Vector, subject: VectorSubject): Vector<AnsweredStep> {
  return { name: vector.name, policy: vector.policy, steps: vector.steps.map((step) => answeredStep(bare(step), subject)) }
}

/** The oracle as the subject of a vector. */
export function oracleSubject(policy: VectorPolicy): VectorSubject {
  const oracle = new Oracle(specOf(policy))
  return (call, atUs) => {
    const atMs = atUs / 1000
    if ('take' in call) return oracle.take('k', call.take, atMs)
    if ('peek' in call) return oracle.peek('k', call.peek, atMs)
    if ('refund' in call) return oracle.refund('k', call.refund, atMs)
    if ('penalize' in call) return oracle.penalize('k', call.penalize, atMs)
    if ('blockUs' in call) return oracle.block('k', call.blockUs / 1000, atMs)
    if ('reset' in call) return oracle.reset('k', atMs)
    oracle.update(specOf(call.update), atMs)
    return undefined
  }
}

export function specOf({ limit, windowUs, burst }: VectorPolicy): RateSpec {
  return { limit, windowMs: windowUs / 1000, burst }
}

function answeredStep(step: VectorStep, subject: VectorSubject): AnsweredStep {
  const { atUs, everyUs = 0, times = 1 } = step
  let admitted = 0
  let last: OracleDecision | undefined
  for (let i = 0; i < times; i++) {
    last = subject(step, atUs + i * everyUs)
    if (last?.allowed) admitted++
  }
  const answer = last === undefined ? {} : { answer: answerOf(last) }
  return times === 1 ? { ...step, ...answer } : { ...step, admitted, ...answer }
}

function answerOf({ allowed, remaining, retryAfterMs, resetAfterMs }: OracleDecision): VectorAnswer {
  return { allowed, remaining, retryAfterMs: retryAfterMs === Number.POSITIVE_INFINITY ? 'never' : retryAfterMs, resetAfterMs }
}

/** The step without the answers it may carry. */
function bare(step: AnsweredStep): VectorStep {
  const { admitted: _admitted, answer: _answer, ...rest } = step
  return rest
}
