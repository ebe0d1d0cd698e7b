import { isDeepStrictEqual } from 'node:util'
import type { CallRate } from '../../../sluicegate/dist/rate-table/call-rate.js'
import type { CommandRunner } from '../../../sluicegate/dist/redis/command-runner.js'
import { replayedInMemory } from '../kit.js'
import type { AlgorithmName, Oracle, PolicySpec, SinglePolicySpec } from '../oracle/oracle.js'
import { Random } from '../random.js'
import type { Answer } from '../replay.js'
import { limiterAnswers, type Mismatch, mismatchIn, oracleAnswers } from '../replay.js'
import type { Sequence, Step } from '../sequences/draws.js'
import { nextPolicy } from '../sequences/random-policy.js'
import { sequenceOf } from '../sequences/sequence-of.js'
import { exactLimiter, FleetReplay, namedPolicy } from './fleet-replay.js'

/** What is declared to be different between a store and the limiter in memory, taken out of a sequence. */
interface TwinOptions {
  /** Whether to keep the changes of policy; `turns` has two policies that change places again and again. Default neither. */
  readonly updates?: boolean | 'turns'
}

/** The sequence of a seed for a store: times run forward, counts and times are not packed into words. */
function twinSequence(seed: number, algorithm: AlgorithmName, { updates = false }: TwinOptions = {}): Sequence {
  const { policy, steps } = sequenceOf(seed, algorithm)
  let lastMs = 0
  const forward = steps.map((step): Step => {
    lastMs = Math.max(lastMs, step.atMs)
    return step.verb === 'update' ? { ...step, atMs: lastMs, policy: unpacked(step.policy) } : { ...step, atMs: lastMs }
  })
  const first = unpacked(policy)
  const steady = forward.filter(({ verb }) => verb !== 'update')
  if (updates === 'turns') return { policy: withoutCalendar(first), steps: takingTurns(seed, first, steady) }
  return { policy: first, steps: updates ? withUpdates(first, forward) : steady }
}

/** Counters without the cap of 16 bits, slots that hold any time. */
function unpacked(spec: PolicySpec): PolicySpec {
  return spec.algorithm === 'all-of' ? { ...spec, parts: spec.parts.map(unpackedSingle) } : unpackedSingle(spec)
}

function unpackedSingle(spec: SinglePolicySpec): SinglePolicySpec {
  if (spec.algorithm === 'sliding-window') return { ...spec, isUnpacked: true }
  return spec.algorithm === 'sliding-log' ? { ...spec, tickUs: 1 } : spec
}

/**
 * What was booked before a change is settled under the policy of before, which is its own thing; and a log counts whatever it still
 * holds, so that it changes once.
 */
function withUpdates(policy: PolicySpec, steps: readonly Step[]): readonly Step[] {
  const hasLog = [policy, ...(policy.algorithm === 'all-of' ? policy.parts : [])].some(({ algorithm }) => algorithm === 'sliding-log')
  let updates = 0
  return steps.filter(({ verb }) => {
    if (verb === 'update') return ++updates === 1 || !hasLog
    return updates === 0 || !['settle', 'cancel', 'heartbeat', 'release'].includes(verb)
  })
}

/** As if two processes asked, one with another version of the policy; of a calendar that only one has, the other knows no windows. */
function takingTurns(seed: number, policy: PolicySpec, steps: readonly Step[]): readonly Step[] {
  const random = new Random(seed)
  const first = withoutCalendar(policy)
  const second = withLogsOf(first, unpacked(nextPolicy(random, first, false)))
  let isSecond = false
  return steps
    .filter(({ verb }) => !['settle', 'cancel', 'heartbeat', 'release'].includes(verb))
    .flatMap((step): Step[] => {
      if (random.chance(0.6)) return [step]
      isSecond = !isSecond
      const { atMs, key, end } = step
      return [{ atMs, key, end, verb: 'update', policy: isSecond ? second : first }, step]
    })
}

function withoutCalendar(spec: PolicySpec): PolicySpec {
  if (spec.algorithm === 'all-of') return { ...spec, parts: spec.parts.map((part) => withoutCalendar(part) as SinglePolicySpec) }
  const { algorithm, limit, windowMs } = spec
  return algorithm === 'fixed-window' ? { algorithm, limit, windowMs } : spec
}

/** A log counts whatever it still holds, under whatever numbers. */
function withLogsOf(first: PolicySpec, second: PolicySpec): PolicySpec {
  if (first.algorithm !== 'all-of' || second.algorithm !== 'all-of') return second
  const { parts } = second
  return { ...second, parts: first.parts.map((part, i) => (part.algorithm === 'sliding-log' ? part : (parts[i] ?? part))) }
}

/** Sequences that are played at once, over one connection. */
const AT_ONCE = 32

/** So far ahead the scripts book at least: `FURTHEST_US` in `lua/steps/bounds.lua`. */
export const mostAheadInStoreMs = (): number => 3_600_000

/** What a run over many seeds found. */
export interface TwinRun {
  readonly sequences: number
  readonly steps: number
  /** Of the sequences those that were compared with the limiter in memory, too. */
  readonly inMemory: number
  readonly mismatches: readonly { readonly seed: number; readonly against: 'oracle' | 'memory'; readonly mismatch: Mismatch }[]
}

export interface CompareTwins extends TwinOptions {
  readonly algorithm: AlgorithmName
  readonly seeds: Iterable<number>
  /** What keys in the store begin with: of each run another. */
  readonly prefix: string
  /** The oracle of a policy; default that of the contract. */
  readonly oracle?: ((spec: PolicySpec) => Oracle) | undefined
}

/**
 * The scripts on a real server, at given times, against the oracle, and against the limiter in memory wherever nothing of what is declared
 * different shows: field by field.
 */
export async function compareTwins(runner: CommandRunner, options: CompareTwins): Promise<TwinRun> {
  const { algorithm, prefix, oracle } = options
  const mismatches: { seed: number; against: 'oracle' | 'memory'; mismatch: Mismatch }[] = []
  const seeds = options.seeds[Symbol.iterator]()
  let played = 0
  let sequences = 0
  let steps = 0
  let inMemory = 0
  const next = async (): Promise<void> => {
    for (let turn = seeds.next(); turn.done !== true; turn = seeds.next()) {
      const seed = turn.value
      const sequence = twinSequence(seed, algorithm, options)
      const actual = await answers(runner, `${prefix} ${algorithm} ${seed} ${++played}`, sequence)
      const expected = oracleAnswers(sequence, oracle)
      const mismatch = mismatchIn(sequence, expected, actual, mostAheadInStoreMs)
      if (mismatch !== undefined) mismatches.push({ seed, against: 'oracle', mismatch })
      const memory =
        options.updates !== undefined && options.updates !== false ? undefined : memoryAnswers(seed, algorithm, sequence, expected)
      if (memory !== undefined) {
        inMemory++
        const end = expected.findIndex((answer, i) => answer?.allowed === true && memory[i]?.allowed === false)
        // Where the oracle has no answer, as for what was reserved in the moment of a reset, there is more than one.
        const sure = (end === -1 ? memory : memory.slice(0, end)).map((answer, i) => expected[i] && answer)
        const different = mismatchIn(sequence, sure, actual, mostAheadInStoreMs)
        if (different !== undefined) mismatches.push({ seed, against: 'memory', mismatch: different })
      }
      steps += sequence.steps.length
      sequences++
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  return { sequences, steps, inMemory, mismatches }
}

async function answers(runner: CommandRunner, prefix: string, { policy, steps }: Sequence): Promise<(Answer | undefined)[]> {
  const replay = new FleetReplay(exactLimiter(runner, prefix.slice(0, 100), namedPolicy(policy)))
  const all: (Answer | undefined)[] = []
  try {
    for (const step of steps) all.push(await replay.answer(step))
  } finally {
    replay.close()
  }
  return all
}

/** Undefined where the packed words of memory are declared to decide otherwise. */
function memoryAnswers(
  seed: number,
  algorithm: AlgorithmName,
  twin: Sequence,
  expected: readonly unknown[],
): (Answer | undefined)[] | undefined {
  const packed: Sequence = { policy: sequenceOf(seed, algorithm).policy, steps: twin.steps }
  if (!isDeepStrictEqual(oracleAnswers(packed), expected)) return undefined
  const replayed = replayedInMemory(packed)
  try {
    return limiterAnswers(packed.steps, replayed)
  } finally {
    for (const end of replayed.ends) end.close()
  }
}

/** A call of a rate table at a time. */
export interface RandomCall {
  readonly rate: CallRate
  readonly quantity: number
  readonly nowUs: number
}

const CALLS = 12
export const START_US = 1_700_000_000_000_000
const DAY_US = 86_400_000_000
/** Larger numbers are no exact doubles. */
const MOST_TOKENS = 2 ** 53 - 3
/** Rare, and long enough that the time base of a table in memory moves. */
const LONGEST_PAUSE_US = 30 * DAY_US

/** Some calls on one key, of one rate or two, from `fromUs` on. */
export function randomCalls(random: Random, fromUs: number = START_US): RandomCall[] {
  const rates = Array.from({ length: random.integer(1, 2) }, () => randomRate(random))
  let nowUs = fromUs
  return Array.from({ length: CALLS }, () => {
    const rate = random.pick(rates)
    nowUs += randomPauseUs(random, rate)
    return { rate, quantity: randomQuantity(random, rate), nowUs }
  })
}

/** From a token a nanosecond to one in a year, and bursts up to what 400 days refill. */
function randomRate(random: Random): CallRate {
  const periodS = random.pick([1, 1, 2, 60, 60, 3600, 86_400, 2_592_000, 31_536_000, random.integer(1, 10_000_000)])
  const count = random.pick([
    1,
    7,
    30,
    100,
    3000,
    random.magnitude(1, 1000),
    random.magnitude(1, 1_000_000),
    random.magnitude(1, Math.min(periodS * 1e9, MOST_TOKENS)),
  ])
  const most = Math.floor((400 * 86_400 * count) / periodS) - 1
  const burst = random.pick([0, 1, 15, count - 1, random.integer(0, 100), random.magnitude(1, 1_000_000_000)])
  return { maxBurst: Math.max(0, Math.min(burst, most, MOST_TOKENS)), count, periodS }
}

function randomQuantity(random: Random, { maxBurst }: CallRate): number {
  return random.pick([1, 1, 1, 0, 2, maxBurst, maxBurst + 1, maxBurst + 2, random.integer(0, maxBurst + 1), 4_000_000_000])
}

function randomPauseUs(random: Random, { count, periodS }: CallRate): number {
  if (random.chance(1 / 2000)) return random.integer(0, LONGEST_PAUSE_US)
  const intervalUs = Math.ceil((periodS * 1e6) / count)
  return Math.min(random.pick([0, 0, 1, random.integer(0, 1000), random.integer(0, intervalUs), intervalUs, 3 * intervalUs]), DAY_US)
}
