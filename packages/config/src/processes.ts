import { availableParallelism } from 'node:os'
import type { Section } from './section.js'

/** Ids begin with a byte for the process or thread; more than there are cores are of no use. */
export const MAX_PROCESSES = 64

/** What `auto` means. */
export function processesOfMachine(): number {
  return Math.min(availableParallelism(), MAX_PROCESSES)
}

/** The option `processes` or `threads`: a number, or `auto`. */
export function readProcesses(section: Section, option: 'processes' | 'threads'): number {
  const chosen = section.integerOr(option, 'auto', 1, MAX_PROCESSES) ?? 1
  return chosen === 'auto' ? processesOfMachine() : chosen
}
