import type { Substitution } from './core-sources.js'
import { inFile, type Mutant, mutant } from './core-sources.js'
import { KCAS_MUTANTS, TABLE_MUTANTS } from './table-mutants.js'

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

const inPrevious = inFile('algorithms/previous-count.ts')
const inLog = inFile('algorithms/sliding-log.ts')
const inReplace = inFile('table/replace-state.ts')
const inPermits = inFile('algorithms/permits.ts')
const inSweep = inFile('table/migrate.ts')
const CLEANED: Substitution = {
  file: 'table/insert.ts',
  from: '  if (stride != 0 && !isBan(fingerprint) && !resetExtension(entry, mark, identity)) return RETRY\n',
  to: '',
}

/** Faults in what keys have beside their entries. */
export const ENCODING_MUTANTS: readonly Mutant[] = [
  mutant(
    'the copy does not look at the state',
    'windows: take in the new, in the third | in the old | in the new',
    [2, 0],
    inPrevious('else if (load(entry + STATE) == state) swap(', 'else swap('),
  ),
  mutant(
    'no seal before the copy',
    'windows: take in the new | all refunded in the old, take in the new',
    [1, 0],
    inPrevious('  if (!isSealed(valueOf(state))) swap(entry + STATE, state, state | sealedBit)\n', ''),
    inPrevious('else if (load(entry + STATE) == state) swap(', 'if (load(entry + STATE) == state) swap('),
  ),
  mutant(
    'a new window without a copy',
    'windows: take in the new | in the new | in the old',
    [0, 0],
    inReplace('encoding == WIDE && needsCopy(', 'false && needsCopy('),
  ),
  mutant('a sealed count still counts', 'windows: take in the new, in the third | in the old | in the new', [1, 0], {
    file: 'algorithms/sliding-window.ts',
    from: '    if (isSealed(value)) {\n',
    to: '    if (false) {\n',
  }),
  mutant('time bases are alike', 'windows: take that carries over | eight changes, the last to other windows', [1, 0], {
    file: 'policy/publish.ts',
    from: ' - ticksApart(rangeUs, tickUs) * tickUs)',
    to: ')',
  }),
  mutant('a new owner keeps the count before', 'windows: take in the new | take-over, next window', [1, 0], CLEANED),
  mutant('a new owner keeps the requests', 'log: take | take-over, take | take', [1, 0], CLEANED),
  mutant('a new owner keeps the permits', 'permits: take-over | heartbeat | take', [1, 0], CLEANED),
  mutant('permits are wiped without a look at the mark', 'permits: first take x 3, idle entries', [2, 0], {
    file: 'algorithms/concurrency.ts',
    from: '      if (load(entry + STATE) != mark) return false\n',
    to: '',
  }),
  mutant('a permit that a change puts back while it is wiped stays', 'permits: release | reset | take', [3, 0], {
    file: 'algorithms/concurrency.ts',
    from: '      if (swap(slot, permit, 0)) break\n',
    to: '      swap(slot, permit, 0)\n      break\n',
  }),
  mutant(
    'the header does not turn when requests go',
    'log: reserve | reserve | refund',
    [1, 0],
    inLog('(place, held, costSoFar, whole, true)', '(place, held, costSoFar, whole, false)'),
  ),
  mutant(
    'a copy does not look at the state',
    'log: take | take-over, take | take',
    [1, 0],
    inLog('  if (load(entry + STATE) != state) return RETRY\n', ''),
  ),
  mutant(
    'a request is appended though the copy failed',
    'log: take | take | take, wrapped around',
    [1, 0],
    inReplace('        if (todo != 0) return todo\n', ''),
  ),
  mutant(
    'header and state change one after the other',
    'log: take | refund of two | peek',
    [1, 0],
    inReplace(
      'return swapOrStageBoth(entry + STATE, state, word, headerOf(entry), header, log.nextHeader) ? 0 : RETRY',
      'return swap(headerOf(entry), header, log.nextHeader) && swap(entry + STATE, state, word) ? 0 : RETRY',
    ),
  ),
  mutant(
    'a ring begins anew without a new header',
    'log: take after all is over | the same | refund',
    [0, 0],
    inLog('    turnHeader(0, 0, 0, true)\n    total = cost', '    total = cost'),
  ),
  mutant(
    'a ring stays where it was',
    'log: take | larger limit | take',
    [0, 0],
    inSweep('if (from != 0 && encoding == LOG) return', 'if (false) return'),
  ),
  mutant(
    'a permit is given without a turn of the state',
    'permits: take-over | heartbeat | take',
    [1, 0],
    {
      file: 'algorithms/permits.ts',
      from: 'swapOrStageBoth(entry + STATE, state, withValue(state, epoch, turned(value)), freeSlot, freeWord, permitOf(until, serial, cost))',
      to: 'swap(freeSlot, freeWord, permitOf(until, serial, cost))',
    },
    { file: 'algorithms/permits.ts', from: 'import { load } from', to: 'import { load, swap } from' },
  ),
  mutant(
    'a permit is changed without a turn of the state',
    'permits: take | heartbeat | release, over an expiry',
    [2, 0],
    {
      file: 'algorithms/permits.ts',
      from: 'swapOrStageBoth(entry + STATE, state, withValue(state, epoch, turned(value)), address, permit, next)',
      to: 'swap(address, permit, next)',
    },
    { file: 'algorithms/permits.ts', from: 'import { load } from', to: 'import { load, swap } from' },
  ),
  mutant(
    'an expired permit is renewed',
    'permits: take | heartbeat | release, over an expiry',
    [1, 0],
    inPermits(' || hasPassed(untilUs)', ''),
  ),
  mutant(
    'a denial does not look whether the permits changed',
    'permits: take-over, take | release | take-over',
    [1, 0],
    inPermits('  if (load(entry + STATE) != state) return RETRY\n', ''),
  ),
  mutant('for a key time runs back', 'permits: take | heartbeat | release, over an expiry', [0, 0], {
    file: 'algorithms/concurrency.ts',
    from: 'nowUs = max<i64>(us, <i64>(value >> TURN_BITS)) + baseUs',
    to: 'nowUs = us + baseUs',
  }),
  mutant(
    'permits stay where they were',
    'permits: take | three in flight | release',
    [0, 0],
    inSweep('encoding == CONCURRENCY && extensionMoved(from) && !migratePermits(entry, state, from)', 'false'),
  ),
  mutant('permits are copied without a look at the state', 'permits: take | three in flight | release', [1, 0], {
    file: 'algorithms/permits.ts',
    from: '    addWord(descriptor, entry + STATE, state, state)\n',
    to: '',
  }),
  mutant('a change of policy goes by slots that are not there any more', 'permits: three in flight, take | one in flight | peek', [1, 0], {
    file: 'table/update.ts',
    from: 'else if (epoch != seenEpoch) break',
    to: 'else if (false) break',
  }),
]

const inRing = inFile('algorithms/hold-ring.ts')
const inRings = inFile('table/rings.ts')
const inHolds = inFile('table/holds.ts')
const inBeside = inFile('table/beside-holds.ts')

/** Faults in what open work holds. */
export const HOLD_MUTANTS: readonly Mutant[] = [
  mutant(
    'a hold is freed before it is spent',
    'holds: add | take | peek',
    [1, 0],
    inBeside(
      '  const alone = staging == 0\n',
      `  if (freed > 0) {
    const there = resolved(sum)
    if (!swapBoth(ringWordOf(entry), ringWord, nextVersion(ringWord), sum, there, there - <u64>freed)) return RETRY
    return isSwap ? replaceState(entry, state, next, stride != 0) : 0
  }
  const alone = staging == 0\n`,
    ),
    inBeside('resolved, stageIn, staging }', 'resolved, stageIn, staging, swapBoth }'),
  ),
  mutant(
    'a slot that has ended counts',
    'holds: take after the end | add before it | open',
    [0, 0],
    inRing('    if (endUs > atUs) {\n', '    if (true) {\n'),
  ),
  mutant(
    'a lapsed hold is spent from',
    'holds: take after an end | add before it, of another that goes on',
    [1, 0],
    inRing('  if (endUs <= atUs || namesNone(ringWord)) return 0\n', '  if (namesNone(ringWord)) return 0\n'),
  ),
  mutant(
    'for a ring time runs back',
    'holds: take after an end | add before it, of another that goes on',
    [1, 0],
    inRing('  atUs = max<i64>(nowUs, sinceUs)\n', '  atUs = nowUs\n'),
    inRing('    if (endUs <= sinceUs) continue\n', ''),
  ),
  mutant(
    'tokens are lost when two threads renew',
    'holds: renew | renew | peek, take',
    [1, 0],
    inHolds(
      '    addWord(descriptor, to, before, before + moved)\n    if (commit(descriptor)) return <f64>toUs\n',
      '    if (commit(descriptor)) {\n      store(to, before + moved)\n      return <f64>toUs\n    }\n',
    ),
    inHolds('import { add, load } from', 'import { add, load, store } from'),
  ),
  mutant(
    'a take does not look whether the ring has changed',
    'holds: take | open | open',
    [1, 0],
    inBeside(
      '    addWord(descriptor, ringWordOf(entry), ringWord, freed > 0 ? nextVersion(ringWord) : ringWord)\n',
      '    if (freed > 0) addWord(descriptor, ringWordOf(entry), ringWord, nextVersion(ringWord))\n',
    ),
  ),
  mutant(
    'work opens without a look at what is spent',
    'holds: take | open | open',
    [1, 0],
    inHolds('    addWord(staging, entry + STATE, state, state)\n', ''),
  ),
  mutant(
    'a key with open work makes room',
    'holds: take-over | add | take',
    [0, 0],
    inFile('table/search.ts')('        if (letGo(entry, state, nowUs)) entry -= ENTRY_SIZE\n        continue\n', ''),
  ),
  mutant(
    'a ring is taken from a key that holds something',
    'holds: open of another key, one ring | close | open',
    [0, 0],
    inRings('  return held == 0 && detach(', '  return detach('),
  ),
  mutant('a ring is not emptied for its next key', 'holds: save | open | add', [0, 0], inRings('    clear(ring)\n', '')),
  mutant(
    'a key leaves without its ring',
    'holds: save | open | add',
    [1, 0],
    inFile('table/saved-key.ts')('(hasRing ? evictWithRing(entry, state) : evict(entry, state))', 'evict(entry, state)'),
  ),
]

/** Every fault that the explorer has to find. */
export const MUTANTS: readonly Mutant[] = [...TABLE_MUTANTS, ...KCAS_MUTANTS, ...ENCODING_MUTANTS, ...GROWTH_MUTANTS, ...HOLD_MUTANTS]
