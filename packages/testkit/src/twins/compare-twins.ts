import { isDeepStrictEqual } from 'node:util'
import type { CommandRunner } from '../../../sluicegate/dist/redis/command-runner.js'
import type { Answer } from '../answer.js'
import { replayedInMemory } from '../kit.js'
import type { Oracle } from '../oracle/oracle.js'
import type { AlgorithmName, PolicySpec } from '../oracle/policy-spec.js'
import { limiterAnswers, type Mismatch, mismatchIn, oracleAnswers } from '../replay.js'
import type { Sequence } from '../sequences/sequence.js'
import { sequenceOf } from '../sequences/sequence-of.js'
import { exactLimiter, FleetReplay, namedPolicy } from './fleet-replay.js'
import { type TwinOptions, twinSequence } from './twin-sequence.js'

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
        const different = mismatchIn(sequence, end === -1 ? memory : memory.slice(0, end), actual, mostAheadInStoreMs)
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
