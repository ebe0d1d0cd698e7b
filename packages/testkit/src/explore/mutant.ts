import type { Substitution } from './core-sources.js'

/** A fault planted in the core, and the scenario that has to find it. */
export interface Mutant {
  readonly name: string
  readonly substitutions: readonly Substitution[]
  readonly scenario: string
  readonly preemptions: number
  readonly deaths: number
}

export function mutant(name: string, scenario: string, [preemptions, deaths]: [number, number], ...substitutions: Substitution[]): Mutant {
  return { name, scenario, preemptions, deaths, substitutions }
}

/** Makes substitutions in one file of the core. */
export function inFile(file: string): (from: string, to: string) => Substitution {
  return (from, to) => ({ file, from, to })
}
