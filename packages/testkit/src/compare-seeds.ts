import { replayedInMemory } from './kit.js'
import type { AlgorithmName } from './oracle/policy-spec.js'
import { firstMismatch, type Mismatch } from './replay.js'
import type { Sequence } from './sequences/sequence.js'
import { sequenceOf } from './sequences/sequence-of.js'

/** What a run over many seeds found. */
export interface OracleRun {
  readonly sequences: number
  readonly decisions: number
  readonly mismatches: readonly { readonly seed: number; readonly mismatch: Mismatch }[]
}

/** How to run over them. */
export interface CompareOptions {
  /** Of the sequences; without one those of rates that only know the plain verbs. */
  readonly algorithm?: AlgorithmName | undefined
  readonly onSequence?: (done: number) => void
}

/** Compares the limiter in memory with the oracle on the sequence of each seed. */
export function compareSeeds(seeds: Iterable<number>, { algorithm, onSequence }: CompareOptions = {}): OracleRun {
  const mismatches: { seed: number; mismatch: Mismatch }[] = []
  let sequences = 0
  let decisions = 0
  for (const seed of seeds) {
    const sequence = sequenceOf(seed, algorithm)
    const mismatch = compared(seed, sequence)
    if (mismatch !== undefined) mismatches.push({ seed, mismatch })
    sequences++
    decisions += sequence.steps.length
    onSequence?.(sequences)
  }
  return { sequences, decisions, mismatches }
}

function compared(seed: number, sequence: Sequence): Mismatch | undefined {
  const replayed = replayedInMemory(sequence)
  try {
    return firstMismatch(sequence, replayed)
  } catch (cause) {
    throw new Error(`the ${sequence.policy.algorithm} sequence of seed ${seed} throws`, { cause })
  } finally {
    for (const end of replayed.ends) end.close()
  }
}

/** `count` seeds from `first` on. */
export function* seedsFrom(first: number, count: number): Iterable<number> {
  for (let i = 0; i < count; i++) yield first + i
}
