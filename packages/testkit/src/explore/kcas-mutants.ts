import { inFile, type Mutant, mutant } from './mutant.js'

const inKcas = inFile('atomics/kcas.ts')
const DECIDED = 'const done = placed == count && swap(descriptor + STATUS, status, withOutcome(status, COMMITTED))'
const TICKETS_GO = '  for (let i: u64 = 0; i < placed; i++) {\n    const word = wordAt(descriptor, i)\n'
const GIVES_FREE = '  store(descriptor + STATUS, withOutcome(status, FREE))\n  return done\n'

/** Faults in the swap over several words. */
export const KCAS_MUTANTS: readonly Mutant[] = [
  mutant(
    'the words go before the outcome is decided',
    'both: A and B | B and A | A',
    [1, 0],
    inKcas(DECIDED, 'const done = placed == count'),
  ),
  mutant(
    'the outcome does not depend on the words',
    'both: A and B | A | B',
    [1, 0],
    inKcas(DECIDED, DECIDED.replace('placed == count && ', '')),
  ),
  mutant(
    'an outcome is written over',
    'both: A and B | A | B',
    [2, 0],
    inKcas(DECIDED, 'const done = placed == count\n  if (done) store(descriptor + STATUS, withOutcome(status, COMMITTED))'),
  ),
  mutant(
    'a helper calls off what may be decided by now',
    'both: A and B | A | B',
    [2, 0],
    inKcas(
      '    else swap(descriptor + STATUS, status, withOutcome(status, ABORTED))\n',
      '    else store(descriptor + STATUS, withOutcome(status, ABORTED))\n',
    ),
  ),
  mutant(
    'a helper does not look at the outcome',
    'both: A and B | A | B',
    [1, 0],
    inKcas('loadPlain(word + ((status & OUTCOME_MASK) == COMMITTED ? NEXT : EXPECTED))', 'loadPlain(word + NEXT)'),
  ),
  mutant(
    'a helper takes every outcome for called off',
    'both: A and B | A | B',
    [1, 0],
    inKcas('loadPlain(word + ((status & OUTCOME_MASK) == COMMITTED ? NEXT : EXPECTED))', 'loadPlain(word + EXPECTED)'),
  ),
  mutant(
    'the tickets of what was called off stay',
    'both: A and B | B and A | A',
    [2, 0],
    inKcas(TICKETS_GO, TICKETS_GO.replace('{', '{\n    if (!done) break')),
  ),
  mutant(
    'a descriptor is free before its tickets are gone',
    'both: A and B | B and A | A',
    [2, 0],
    inKcas(TICKETS_GO, `  store(descriptor + STATUS, withOutcome(status, FREE))\n${TICKETS_GO}`),
  ),
  mutant(
    'the turns of a descriptor are alike',
    'both: A and B, A and B | A',
    [3, 0],
    inKcas('((turnOf(status) + 1) << OUTCOME_BITS)', '(turnOf(status) << OUTCOME_BITS)'),
  ),
  mutant('a descriptor is never free again', 'both: A and B | A | B', [0, 0], inKcas(GIVES_FREE, '  return done\n')),
  mutant('a newcomer takes a ticket for a mark', 'both: A and B | newcomer, full, denies newcomers | peek', [1, 0], {
    file: 'table/search.ts',
    from: 'const state = resolved(entry + STATE)\n      if (state == NEVER_USED) return pick(',
    to: 'const state = load(entry + STATE)\n      if (state == NEVER_USED) return pick(',
  }),
  mutant('a key with a ticket is not found', 'both: A and B, B full | refund | peek', [1, 0], {
    file: 'table/search.ts',
    from: '        if (isReference(state)) {\n',
    to: '        if (false) {\n',
  }),
]
