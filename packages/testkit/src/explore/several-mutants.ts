import type { Substitution } from './core-sources.js'
import { type Mutant, mutant } from './mutant.js'

const inSeveral = (from: string, to: string): Substitution => ({ file: 'several.ts', from, to })
const DECIDED = 'const done = placed == count && swap(descriptor + STATUS, status, withOutcome(status, DONE))'
const TICKETS_GO = '  for (let i: u64 = 0; i < placed; i++) {\n    const word = wordAt(descriptor, i)\n'
const GIVES_FREE = '  store(descriptor + STATUS, withOutcome(status, FREE))\n  return done\n'

/** Faults in the swap over several words. */
export const SEVERAL_MUTANTS: readonly Mutant[] = [
  mutant(
    'the words go before the outcome is decided',
    'both: A and B | B and A | A',
    [1, 0],
    inSeveral(DECIDED, 'const done = placed == count'),
  ),
  mutant(
    'the outcome does not depend on the words',
    'both: A and B | A | B',
    [1, 0],
    inSeveral(DECIDED, DECIDED.replace('placed == count && ', '')),
  ),
  mutant(
    'an outcome is written over',
    'both: A and B | A | B',
    [2, 0],
    inSeveral(DECIDED, 'const done = placed == count\n  if (done) store(descriptor + STATUS, withOutcome(status, DONE))'),
  ),
  mutant(
    'a helper calls off what may be decided by now',
    'both: A and B | A | B',
    [2, 0],
    inSeveral(
      '    else swap(descriptor + STATUS, status, withOutcome(status, CALLED_OFF))\n',
      '    else store(descriptor + STATUS, withOutcome(status, CALLED_OFF))\n',
    ),
  ),
  mutant(
    'a helper does not look at the outcome',
    'both: A and B | A | B',
    [1, 0],
    inSeveral('read(word + ((status & OUTCOME_MASK) == DONE ? NEXT : EXPECTED))', 'read(word + NEXT)'),
  ),
  mutant(
    'a helper takes every outcome for called off',
    'both: A and B | A | B',
    [1, 0],
    inSeveral('read(word + ((status & OUTCOME_MASK) == DONE ? NEXT : EXPECTED))', 'read(word + EXPECTED)'),
  ),
  mutant(
    'the tickets of what was called off stay',
    'both: A and B | B and A | A',
    [2, 0],
    inSeveral(TICKETS_GO, TICKETS_GO.replace('{', '{\n    if (!done) break')),
  ),
  mutant(
    'a descriptor is free before its tickets are gone',
    'both: A and B | B and A | A',
    [2, 0],
    inSeveral(TICKETS_GO, `  store(descriptor + STATUS, withOutcome(status, FREE))\n${TICKETS_GO}`),
  ),
  mutant(
    'the turns of a descriptor are alike',
    'both: A and B, A and B | A',
    [3, 0],
    inSeveral('((turnOf(status) + 1) << OUTCOME_BITS)', '(turnOf(status) << OUTCOME_BITS)'),
  ),
  mutant('a descriptor is never free again', 'both: A and B | A | B', [0, 0], inSeveral(GIVES_FREE, '  return done\n')),
  mutant('a newcomer takes a ticket for a mark', 'both: A and B | newcomer, full and told to deny | peek', [1, 0], {
    file: 'table.ts',
    from: 'const state = settled(entry + STATE)\n      if (state == NEVER_USED) return pick(',
    to: 'const state = load(entry + STATE)\n      if (state == NEVER_USED) return pick(',
  }),
  mutant('a key with a ticket is not found', 'both: A and B, B full | refund | peek', [1, 0], {
    file: 'table.ts',
    from: '        if (isTicket(state)) {\n',
    to: '        if (false) {\n',
  }),
]
