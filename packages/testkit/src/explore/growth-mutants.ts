import { inFile, type Mutant, mutant } from './mutant.js'

const inTable = inFile('table/search.ts')
const inOverflow = inFile('table/overflow.ts')

const FIND = 'export function find(fingerprint: u64, home: i32): usize {\n  let line = home\n  for (let probe = 0; probe < '
const ROOM = 'first take x 3, one key, first part full'
const SWAP = '  if (!swapOrStageBoth(counter, counterSeen, <u64>counterNext, budget, budgetSeen, <u64>budgetNext)) return RETRY\n'

/** Faults in tables of several parts, and in what new keys without room are counted by. */
export const GROWTH_MUTANTS: readonly Mutant[] = [
  mutant(
    'the search ends with the first part',
    `parts: ${ROOM}`,
    [1, 0],
    inTable(`${FIND}range`, `${FIND}firstRange`),
    inTable('import { denyWhenFull, ', 'import { denyWhenFull, firstRange, '),
    { file: 'table/layout.ts', from: 'let firstRange: i32 = 0', to: 'export let firstRange: i32 = 0' },
  ),
  mutant('the rescan ends with the first part', `parts: ${ROOM}`, [2, 1], {
    file: 'table/claim.ts',
    from: '  for (let probe = 0; probe < range; probe++) {',
    to: '  for (let probe = 0; probe < 1; probe++) {',
  }),
  mutant('a change of policy sweeps the first part only', 'parts: take | nine updates, in the second part', [0, 0], {
    file: 'table/migrate.ts',
    from: '  const lines = load(base + LINES)\n  const share',
    to: '  const lines: u64 = 1\n  const share',
  }),
  mutant(
    'the counter is charged, the budget is not',
    'full: newcomer | newcomer | the first again',
    [0, 0],
    inOverflow(SWAP, '  if (!swapOrStageBoth(counter, counterSeen, <u64>counterNext, budget, budgetSeen, budgetSeen)) return RETRY\n'),
  ),
  mutant(
    'the budget is charged, the counter is not',
    'full: newcomers on one counter | the same | a clock that stepped back',
    [0, 0],
    inOverflow(SWAP, '  if (!swapOrStageBoth(counter, counterSeen, counterSeen, budget, budgetSeen, <u64>budgetNext)) return RETRY\n'),
  ),
  mutant(
    'counter and budget are charged one after the other',
    'full: newcomer | newcomer | the first again',
    [2, 0],
    inOverflow(
      SWAP,
      '  if (!swap(counter, counterSeen, <u64>counterNext)) return RETRY\n  if (!swap(budget, budgetSeen, <u64>budgetNext)) return RETRY\n',
    ),
    inOverflow('import { add, load } from "../atomics/atomics"', 'import { add, load, swap } from "../atomics/atomics"'),
  ),
]
