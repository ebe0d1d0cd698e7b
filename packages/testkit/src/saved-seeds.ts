import { readFileSync } from 'node:fs'
import { replayedInMemory } from './kit.js'
import type { AlgorithmName } from './oracle/oracle.js'
import { firstMismatch, type Mismatch } from './replay.js'
import { LARGE_SEEDS, type Sequence } from './sequences/draws.js'
import { sequenceOf } from './sequences/sequence-of.js'

interface SavedSeeds {
  /** Of sequences without an algorithm named. */
  readonly seeds: readonly number[]
  /** Of those of an algorithm. */
  readonly of: { readonly [algorithm in AlgorithmName]?: readonly number[] }
}

/** Seeds of sequences that once found something, replayed in every run: `packages/testkit/seeds/oracle.json`. */
export function savedSeeds(algorithm?: AlgorithmName): readonly number[] {
  const file = new URL('../seeds/oracle.json', import.meta.url)
  const { seeds, of } = JSON.parse(readFileSync(file, 'utf8')) as SavedSeeds
  return algorithm === undefined ? seeds : (of[algorithm] ?? [])
}

/** Each saved one once, and `count` others, and as many of large numbers. */
export function seedsOf(algorithm: AlgorithmName, count: number): number[] {
  return [...new Set([...savedSeeds(algorithm), ...seedsFrom(1, count), ...largeSeeds(count)])]
}

/** `count` seeds of sequences with limits up to 2^53 - 1. */
export function largeSeeds(count: number): Iterable<number> {
  return seedsFrom(LARGE_SEEDS, count)
}

/** The same of the scripts of a store: `packages/testkit/seeds/twins.json`. */
export function savedTwinSeeds(algorithm: AlgorithmName): readonly number[] {
  const seeds = JSON.parse(readFileSync(new URL('../seeds/twins.json', import.meta.url), 'utf8')) as Omit<SavedSeeds, 'seeds'>
  return seeds.of[algorithm] ?? []
}

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
