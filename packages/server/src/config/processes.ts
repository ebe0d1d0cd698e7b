import { availableParallelism } from 'node:os'
import type { Section } from './section.js'

/** Ids begin with a byte for the process; more processes than cores are of no use. */
export const MAX_PROCESSES = 64

/** What `auto` means. */
export function processesOfMachine(): number {
  return Math.min(availableParallelism(), MAX_PROCESSES)
}

/** The option `processes`: a number, or `auto`. */
export function readProcesses(section: Section): number {
  const chosen = section.integerOr('processes', 'auto', 1, MAX_PROCESSES) ?? 1
  return chosen === 'auto' ? processesOfMachine() : chosen
}
