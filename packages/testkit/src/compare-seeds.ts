import { replayedInMemory } from './kit.js'
import { firstMismatch, type Mismatch } from './replay.js'
import { type Sequence, sequenceOf } from './sequences.js'

/** What a run over many seeds found. */
export interface OracleRun {
  readonly sequences: number
  readonly decisions: number
  readonly mismatches: readonly { readonly seed: number; readonly mismatch: Mismatch }[]
}

/** Compares the limiter in memory with the oracle on the sequence of each seed. */
export function compareSeeds(seeds: Iterable<number>, onSequence?: (done: number) => void): OracleRun {
  const mismatches: { seed: number; mismatch: Mismatch }[] = []
  let sequences = 0
  let decisions = 0
  for (const seed of seeds) {
    const sequence = sequenceOf(seed)
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
    throw new Error(`the sequence of seed ${seed} throws`, { cause })
  } finally {
    for (const end of replayed.ends) end.close()
  }
}

/** `count` seeds from `first` on. */
export function* seedsFrom(first: number, count: number): Iterable<number> {
  for (let i = 0; i < count; i++) yield first + i
}
