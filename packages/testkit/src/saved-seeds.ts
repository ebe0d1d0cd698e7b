import { readFileSync } from 'node:fs'
import { seedsFrom } from './compare-seeds.js'
import type { AlgorithmName } from './oracle/policy-spec.js'

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

/** Each saved one once, and `count` others. */
export function seedsOf(algorithm: AlgorithmName, count: number): number[] {
  return [...new Set([...savedSeeds(algorithm), ...seedsFrom(1, count)])]
}

/** The same of the scripts of a store: `packages/testkit/seeds/twins.json`. */
export function savedTwinSeeds(algorithm: AlgorithmName): readonly number[] {
  const seeds = JSON.parse(readFileSync(new URL('../seeds/twins.json', import.meta.url), 'utf8')) as Omit<SavedSeeds, 'seeds'>
  return seeds.of[algorithm] ?? []
}
