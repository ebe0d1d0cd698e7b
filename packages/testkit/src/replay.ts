import type { Decision, Limiter } from 'sluicegate'
import { Oracle, type OracleDecision } from './oracle.js'
import type { RateSpec } from './oracle-emission.js'
import type { Sequence, Step } from './sequences.js'

/** How a replay gets at a library: policies and limiters made from plain numbers, on a clock that it sets. */
export interface Replayed {
  /** Sets the clock that the limiter reads. */
  set(ms: number): void
  /** The limiter's ends, the one that made it first. */
  readonly ends: readonly Limiter[]
  update(end: Limiter, spec: RateSpec): void
}

/** The first step whose answer differs, and how. */
export interface Mismatch {
  readonly step: number
  readonly verb: Step['verb']
  readonly field: keyof OracleDecision
  readonly expected: unknown
  readonly actual: unknown
}

const FIELDS = ['allowed', 'limit', 'remaining', 'retryAfterMs', 'resetAfterMs'] as const

/** Runs a sequence on the oracle: the answer to each step, undefined for an update. */
export function oracleAnswers({ policy, steps }: Sequence): (OracleDecision | undefined)[] {
  const oracle = new Oracle(policy)
  return steps.map((step) => oracleAnswer(oracle, step))
}

/** Runs the same steps on a real limiter. */
export function limiterAnswers(steps: readonly Step[], replayed: Replayed): (Decision | undefined)[] {
  return steps.map((step) => {
    replayed.set(step.atMs)
    return limiterAnswer(replayed, step)
  })
}

function oracleAnswer(oracle: Oracle, step: Step): OracleDecision | undefined {
  const { key } = step
  switch (step.verb) {
    case 'take':
      return oracle.take(key, step.cost, step.atMs)
    case 'peek':
      return oracle.peek(key, step.cost, step.atMs)
    case 'refund':
      return oracle.refund(key, step.tokens, step.atMs)
    case 'penalize':
      return oracle.penalize(key, step.tokens, step.atMs)
    case 'block':
      return oracle.block(key, step.durationMs, step.atMs)
    case 'reset':
      return oracle.reset(key, step.atMs)
    case 'update':
      oracle.update(step.policy, step.atMs)
      return undefined
  }
}

function limiterAnswer({ ends, update }: Replayed, step: Step): Decision | undefined {
  const { key } = step
  const limiter = ends[step.end]
  if (limiter === undefined) throw new RangeError(`no end ${step.end}`)
  switch (step.verb) {
    case 'take':
      return limiter.take(key, step.cost)
    case 'peek':
      return limiter.peek(key, step.cost)
    case 'refund':
      return limiter.refund(key, step.tokens)
    case 'penalize':
      return limiter.penalize(key, step.tokens)
    case 'block':
      return limiter.block(key, step.durationMs)
    case 'reset':
      return limiter.reset(key)
    case 'update':
      update(limiter, step.policy)
      return undefined
  }
}

/** Compares every field of every answer of a limiter with the oracle's. */
export function firstMismatch(sequence: Sequence, replayed: Replayed): Mismatch | undefined {
  const expected = oracleAnswers(sequence)
  const actual = limiterAnswers(sequence.steps, replayed)
  for (const [step, { verb }] of sequence.steps.entries()) {
    for (const field of FIELDS) {
      const [wanted, got] = [expected[step]?.[field], actual[step]?.[field]]
      if (!Object.is(wanted, got)) return { step, verb, field, expected: wanted, actual: got }
    }
  }
  return undefined
}
