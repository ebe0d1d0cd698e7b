import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreError } from 'sluicegate'
import { CREW_ALGORITHMS, everyNth, type PolicySpec, policyOf, shortOrLong } from 'sluicegate-testkit'
import { windowMsOf } from 'sluicegate-testkit/crew.js'
import { AllOfOracle } from 'sluicegate-testkit/oracle/all-of-oracle.js'
import type { Oracle } from 'sluicegate-testkit/oracle/oracle.js'
import { mostCost } from 'sluicegate-testkit/oracle/oracle.js'
import { oracleFor } from 'sluicegate-testkit/oracle/versioned-oracle.js'
import { Random } from 'sluicegate-testkit/random.js'
import { type Answer, bookingAnswer } from 'sluicegate-testkit/replay.js'
import { createLimiter, type Decision, type Key, type Limiter, manualClock } from '../index.js'

/** How many ways of keyStateOf explain an answer: of those where all was remembered, and where something was forgotten. */
interface Explained {
  readonly kept: number
  readonly lost: number
}

/** How a key may stand: an oracle for each policy, and how they answer together. */
interface KeyState {
  readonly parts: readonly Oracle[]
  readonly whole: Oracle
}

/** One of a crowd: all the ways in which it may stand, as each of its policies may have forgotten it where a take of 1 would pass. */
class CrowdKey {
  readonly #key: Key
  #states: readonly KeyState[]

  constructor(spec: PolicySpec, key: Key) {
    this.#key = key
    this.#states = [keyStateOf(spec.algorithm === 'all-of' ? spec.parts.map(oracleFor) : [oracleFor(spec)], spec.algorithm === 'all-of')]
  }

  /** Goes on in those ways only that fit, in a call at that time; a key that was turned away was forgotten by at least one policy. */
  goOn(fits: (oracle: Oracle) => boolean, nowMs: number, isTurnedAway: boolean): Explained {
    const forgetful = this.#states.flatMap((keyStateOf) => this.#forgetting(keyStateOf, nowMs))
    const kept = isTurnedAway ? [] : this.#states.filter(({ whole }) => fits(whole))
    const lost = forgetful.filter(({ whole }) => fits(whole))
    this.#states = [...new Map([...kept, ...lost].map((keyStateOf) => [keyStateOf.whole.stateTextOf(this.#key), keyStateOf])).values()]
    return { kept: kept.length, lost: lost.length }
  }

  /** Every way to forget some of it. */
  #forgetting({ parts, whole }: KeyState, nowMs: number): KeyState[] {
    const may = parts.map((part, i) => part.peek(this.#own(i), 1, nowMs).remaining >= 1)
    const found: KeyState[] = []
    for (let chosen = 1; chosen < 2 ** parts.length; chosen++) {
      if (parts.some((_, i) => isChosen(chosen, i) && !may[i])) continue
      const copies = parts.map((part) => part.copy())
      for (const [i, copy] of copies.entries()) if (isChosen(chosen, i)) copy.forget(this.#own(i))
      found.push(keyStateOf(copies, whole instanceof AllOfOracle))
    }
    return found
  }

  #own(part: number): string {
    return typeof this.#key === 'string' ? this.#key : (this.#key[part] as string)
  }
}

function keyStateOf(parts: readonly Oracle[], isAllOf: boolean): KeyState {
  return { parts, whole: isAllOf ? new AllOfOracle(parts) : (parts[0] as Oracle) }
}

function isChosen(chosen: number, part: number): boolean {
  return ((chosen >> part) & 1) === 1
}

/** More keys than a limiter's table holds, and how its clock is set. */
interface CrowdOptions {
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
interface CrowdResult {
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
function crowd({ seed, calls, keys, spec, limiter, keyOf, set }: CrowdOptions): CrowdResult {
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

const RATES = [
  { limit: 5, windowMs: 1000, burst: 5 },
  { limit: 1, windowMs: 100, burst: 3 },
  { limit: 1, windowMs: 100, burst: 1 },
  { limit: 999_983, windowMs: 3_600_000, burst: 8 },
]
/** The size of the table goes by the seed: that of 4 is the smallest. */
const SEEDS = [4, 3].slice(0, shortOrLong(1, 2))

// In a short run each algorithm has one of both at most, by turns.
for (const [i, { name, specOf, keyOf }] of CREW_ALGORITHMS.entries()) {
  for (const [j, onFull] of (['evict', 'deny'] as const).entries()) {
    everyNth(i + j, 6)(`I7 ${name}, onFull ${onFull}: in a crowd every answer is exact, or that of a key that might be forgotten`, () => {
      let forgotten = 0
      let turnedAway = 0
      for (const [i, spec] of specsOf(specOf).entries()) {
        const { calls, fewKeys } = sizeOf(spec)
        for (const seed of SEEDS) {
          const clock = manualClock(1_789_000_000_000)
          const limiter = createLimiter(policyOf(spec), { clock, onFull, maxKeys: fewKeys * (1 + (seed % 4)) })
          const result = crowd({ seed: seed + 1000 * i, calls, keys: 120, spec, limiter, keyOf, set: (ms) => clock.set(ms) })
          assert.equal(result.fault, undefined, `seed ${seed}, ${JSON.stringify(spec)}`)
          forgotten += result.forgotten
          turnedAway += result.turnedAway
          if (result.forgotten > 0) assert.ok(limiter.stats().evictions > 0)
        }
      }
      assert.equal(forgotten > 10, onFull === 'evict', `${forgotten} forgotten`)
      assert.ok(onFull === 'evict' || forgotten === 0)
      assert.ok(turnedAway > shortOrLong(2, 10), `${turnedAway} turned away`)
    })
  }
}

for (const { name, specOf, keyOf } of CREW_ALGORITHMS) {
  test(`a limiter that forgets whom it denies would be found out: ${name}`, () => {
    const spec = specOf(5, 1000)
    const clock = manualClock(1_789_000_000_000)
    const limiter = createLimiter(policyOf(spec), { clock, maxKeys: 20 })
    const { calls } = sizeOf(spec)
    const take = (key: Key, cost?: number): Decision => {
      const decision = limiter.take(key, cost)
      if (!decision.allowed && decision.remaining === 0) limiter.reset(key)
      return decision
    }
    const forgetful = new Proxy(limiter, { get: (_, verb) => (verb === 'take' ? take : bound(limiter, verb)) })
    const { fault } = crowd({ seed: 1, calls, keys: 10, spec, limiter: forgetful, keyOf, set: (ms) => clock.set(ms) })
    assert.notEqual(fault, undefined)
  })
}

function bound(limiter: Limiter, verb: string | symbol): unknown {
  const value: unknown = Reflect.get(limiter, verb)
  return typeof value === 'function' ? value.bind(limiter) : value
}

/** Rates also with a burst of their own. */
function specsOf(specOf: (takes: number, windowMs: number) => PolicySpec): readonly PolicySpec[] {
  const spec = specOf(5, 1000)
  return 'burst' in spec ? RATES.map((rate) => ({ ...spec, ...rate })) : [spec, specOf(1, 100), specOf(8, 3_600_000)]
}

interface CrowdSize {
  readonly calls: number
  readonly fewKeys: number
}

/** Each of several policies may have forgotten a key or not: these combinations take time to check. A short run has the fewest that suffice. */
function sizeOf(spec: PolicySpec): CrowdSize {
  return spec.algorithm === 'all-of' ? { calls: 250, fewKeys: 1 } : { calls: shortOrLong(500, 800), fewKeys: 5 }
}
