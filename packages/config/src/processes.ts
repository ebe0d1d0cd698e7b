import { availableParallelism } from 'node:os'
import { type Kind, option } from './option.js'

/** Ids begin with a byte for the process or thread; more than there are cores are of no use. */
export const MAX_PROCESSES = 64

/** What `auto` means. */
export function processesOfMachine(): number {
  return Math.min(availableParallelism(), MAX_PROCESSES)
}

/** A number, or `auto`. */
const COUNT: Kind<number> = {
  schema: { anyOf: [{ type: 'integer', minimum: 1, maximum: MAX_PROCESSES }, { const: 'auto' }] },
  read(section, name) {
    const chosen = section.integerOr(name, 'auto', 1, MAX_PROCESSES)
    return chosen === 'auto' ? processesOfMachine() : chosen
  },
}

export const PROCESSES = {
  processes: option('processes', COUNT, {
    what: 'Processes that share the ports and one budget per policy; `auto`: one per core. At the start only.',
    standard: 1,
    example: 'auto',
  }),
  threads: option('threads', COUNT, {
    what: 'The same with worker threads of one process, on Node.js 22.12 and newer; only one of the two.',
    standard: 1,
    example: 'auto',
  }),
}
