import { type Decision, type Key, type Limiter, StoreError } from 'sluicegate'
import { type Answer, bookingAnswer } from './answer.js'
import { windowMsOf } from './crew-algorithms.js'
import { CrowdKey } from './crowd-key.js'
import type { Oracle } from './oracle/oracle.js'
import { mostCost, type PolicySpec } from './oracle/policy-spec.js'
import { Random } from './random.js'

/** More keys than a limiter's table holds, and how its clock is set. */
export interface CrowdOptions {
  readonly seed: number
  readonly calls: number
  readonly keys: number
  readonly spec: PolicySpec
  readonly limiter: Limiter
  /** Who is limited, by name. */
  keyOf(name: string): Key
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
  readonly verb: 'take' | 'peek' | 'refund' | 'penalize' | 'block' | 'reset' | 'reserve'
  readonly key: Key
  readonly amount: number
  readonly nowMs: number
}

const VERBS = ['take', 'take', 'take', 'take', 'peek', 'refund', 'penalize', 'block', 'reset', 'reserve'] as const
/** Of several policies those verbs that need no room: where one part has none, the others would have been changed or not. */
const VERBS_OF_PARTS = ['take', 'take', 'take', 'take', 'peek', 'refund', 'reset'] as const
const FIELDS = ['allowed', 'limit', 'remaining', 'retryAfterMs', 'resetAfterMs'] as const

/**
 * Random calls while time runs forward. Each answer must be the oracle's, or the oracle's for a key whose tokens were forgotten,
 * or that of a new key without room; and a key whose tokens would deny it is neither forgotten nor turned away. Where an answer,
 * rounded to milliseconds, fits both who was remembered and who was forgotten, both are followed up.
 */
export function crowd({ seed, calls, keys, spec, limiter, keyOf, set }: CrowdOptions): CrowdResult {
  const random = new Random(seed)
  const crowded = new Map<string, CrowdKey>()
  const windowMs = windowMsOf(spec)
  const most = mostCost(spec)
  const stepMs = windowMs / most
  const verbs = spec.algorithm === 'all-of' ? VERBS_OF_PARTS : VERBS
  let nowMs = 1_789_000_000_000
  let forgotten = 0
  let turnedAway = 0
  for (let i = 0; i < calls; i++) {
    nowMs += random.pick([
      0,
      0,
      0,
      0.001,
      0.001,
      random.fraction() * stepMs,
      random.fraction() * stepMs,
      random.chance(0.1) ? windowMs / 2 : 0,
    ])
    nowMs = Math.round(nowMs * 1000) / 1000
    set(nowMs)
    const name = `key ${random.magnitude(1, keys)}`
    const call: Call = { verb: random.pick(verbs), key: keyOf(name), amount: random.chance(0.3) ? most : random.integer(1, most), nowMs }
    const key = crowded.get(name) ?? new CrowdKey(spec, call.key)
    crowded.set(name, key)
    const { refusals } = limiter.stats()
    const answer = askLimiter(limiter, call)
    const isTurnedAway = limiter.stats().refusals > refusals
    if (isTurnedAway) turnedAway++
    // A block has its own entry: where that finds no room, nothing is said of the key's tokens.
    if (isTurnedAway && call.verb === 'block') continue
    const fits = (oracle: Oracle): boolean => (isTurnedAway ? !answer?.allowed : isSame(answer, askOracle(oracle, call)))
    const { kept, lost } = key.goOn(fits, nowMs, isTurnedAway)
    if (kept + lost === 0) return { forgotten, turnedAway, fault: `call ${i}: ${JSON.stringify(call)} answers ${JSON.stringify(answer)}` }
    if (kept === 0 && !isTurnedAway) forgotten++
  }
  return { forgotten, turnedAway, fault: undefined }
}

function askLimiter(limiter: Limiter, { verb, key, amount }: Call): Answer | undefined {
  try {
    if (verb === 'reset') return limiter.reset(key)
    if (verb === 'reserve') return bookingAnswer(limiter.reserve(key, amount))
    return limiter[verb](key, amount) as Decision
  } catch (error) {
    if (error instanceof StoreError && error.code === 'TABLE_FULL') return undefined
    throw error
  }
}

/** A block lasts `amount` milliseconds. */
function askOracle(oracle: Oracle, { verb, key, amount, nowMs }: Call): Answer {
  if (verb === 'reset') return oracle.reset(key, nowMs)
  if (verb === 'reserve') return bookingAnswer(oracle.reserve(key, amount, nowMs))
  return oracle[verb](key, amount, nowMs)
}

function isSame(answer: Answer | undefined, expected: Answer): boolean {
  if (answer === undefined || !FIELDS.every((field) => Object.is(answer[field], expected[field]))) return false
  return (expected.parts ?? []).every((part, i) => isSame(answer.parts?.[i], part))
}
