import { type Decision, type Limiter, StoreError } from 'sluicegate'
import type { RateSpec } from './oracle/emission.js'
import type { Oracle, OracleDecision } from './oracle/oracle.js'
import { RateOracle } from './oracle/rate-oracle.js'
import { Random } from './random.js'

/** More keys than a limiter's table holds, and how its clock is set. */
export interface CrowdOptions {
  readonly seed: number
  readonly calls: number
  readonly keys: number
  readonly spec: RateSpec
  readonly limiter: Limiter
  set(ms: number): void
}

/** What happened to them. */
export interface CrowdResult {
  /** Answers that fit only a key that was forgotten meanwhile. */
  readonly forgotten: number
  /** Calls turned away for want of room. */
  readonly turnedAway: number
  /** The first answer that nothing explains. */
  readonly fault: string | undefined
}

interface Call {
  readonly verb: 'take' | 'peek' | 'refund' | 'penalize' | 'block' | 'reset'
  readonly key: string
  readonly amount: number
  readonly nowMs: number
}

const VERBS = ['take', 'take', 'take', 'take', 'peek', 'refund', 'penalize', 'block', 'reset'] as const
const FIELDS = ['allowed', 'limit', 'remaining', 'retryAfterMs', 'resetAfterMs'] as const

/**
 * Random calls while time runs forward. Each answer must be the oracle's, or the oracle's for a key whose tokens were forgotten,
 * or that of a newcomer without room; and a key whose tokens would deny it is neither forgotten nor turned away. Where an answer,
 * rounded to milliseconds, fits both who was remembered and who was forgotten, both are followed up.
 */
export function crowd({ seed, calls, keys, spec, limiter, set }: CrowdOptions): CrowdResult {
  const random = new Random(seed)
  const standings = new Map<string, readonly Oracle[]>()
  let nowMs = 1_789_000_000_000
  let forgotten = 0
  let turnedAway = 0
  for (let i = 0; i < calls; i++) {
    nowMs = Math.round((nowMs + random.pick([0, 0, 0.001, (random.fraction() * spec.windowMs) / spec.limit])) * 1000) / 1000
    set(nowMs)
    const call: Call = { verb: random.pick(VERBS), key: `key ${random.magnitude(1, keys)}`, amount: random.integer(1, spec.burst), nowMs }
    const remembering = standings.get(call.key) ?? [new RateOracle(spec)]
    const forgetful = remembering.filter((oracle) => mayBeForgotten(oracle, call)).map((oracle) => forgetting(oracle, call.key))
    const { refusals } = limiter.stats()
    const answer = askLimiter(limiter, call)
    const isTurnedAway = limiter.stats().refusals > refusals
    if (isTurnedAway) turnedAway++
    // A block has an entry of its own: where that finds no room, nothing is said of the key's tokens.
    if (isTurnedAway && call.verb === 'block') continue
    const fits = (oracle: Oracle): boolean => (isTurnedAway ? !answer?.allowed : isSame(answer, askOracle(oracle, call)))
    const [kept, lost] = [isTurnedAway ? [] : remembering.filter(fits), forgetful.filter(fits)]
    if (kept.length + lost.length === 0)
      return { forgotten, turnedAway, fault: `call ${i}: ${JSON.stringify(call)} answers ${JSON.stringify(answer)}` }
    if (kept.length === 0 && !isTurnedAway) forgotten++
    standings.set(call.key, [...new Map([...kept, ...lost].map((oracle) => [oracle.standing(call.key), oracle])).values()])
  }
  return { forgotten, turnedAway, fault: undefined }
}

function mayBeForgotten(oracle: Oracle, { key, nowMs }: Call): boolean {
  return oracle.peek(key, 1, nowMs).remaining >= 1
}

function forgetting(oracle: Oracle, key: string): Oracle {
  const copy = oracle.copy()
  copy.forget(key)
  return copy
}

function askLimiter(limiter: Limiter, { verb, key, amount }: Call): Decision | undefined {
  try {
    if (verb === 'reset') return limiter.reset(key)
    return limiter[verb](key, amount)
  } catch (error) {
    if (error instanceof StoreError && error.code === 'TABLE_FULL') return undefined
    throw error
  }
}

/** A block lasts `amount` milliseconds. */
function askOracle(oracle: Oracle, { verb, key, amount, nowMs }: Call): OracleDecision {
  if (verb === 'reset') return oracle.reset(key, nowMs)
  return oracle[verb](key, amount, nowMs)
}

function isSame(answer: Decision | undefined, expected: OracleDecision): boolean {
  return answer !== undefined && FIELDS.every((field) => Object.is(answer[field], expected[field]))
}
