import { inFile, type Mutant, mutant } from './core-sources.js'

const inKcas = inFile('atomics/kcas.ts')
const DECIDED = 'const done = placed == count && swap(descriptor + STATUS, status, withOutcome(status, COMMITTED))'
const TICKETS_GO = '  for (let i: u64 = 0; i < placed; i++) {\n    const word = wordAt(descriptor, i)\n'
const GIVES_FREE = '  store(descriptor + STATUS, withOutcome(status, FREE))\n  return done\n'

const ALONE = 'holds: open, open, add, renew, close alone | add | take'

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
  mutant(
    'a descriptor that was used alone is never free again',
    ALONE,
    [0, 0],
    inKcas(
      '  if (isAlone) storePlain(descriptor + STATUS, withOutcome(loadPlain(descriptor + STATUS), FREE))\n  else store(',
      '  if (!isAlone) store(',
    ),
  ),
  mutant(
    'a thread is alone beside others',
    ALONE,
    [1, 0],
    inKcas('let isAlone: bool = false', 'let isAlone: bool = true'),
    inKcas(
      'import { add, load, store, swap } from "./atomics"\nimport { loadPlain, storePlain } from "./plain"\n',
      'import { add, load, load as loadPlain, store, store as storePlain, swap } from "./atomics"\n',
    ),
  ),
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

const inCas = inFile('table/cas-loop.ts')
const inTakes = inFile('table/takes.ts')
const inInsert = inFile('table/insert.ts')
const inReplace = inFile('table/replace-state.ts')
const inClaim = inFile('table/claim.ts')
const inTable = inFile('table/search.ts')
const inWords = inFile('atomics/words.ts')
const inSaved = inFile('table/saved-key.ts')

/** What tells the ordinary take of a bucket or GCRA from that of the other encodings. */
const QUICK = ' && isOrdinary(state, nowUs) && !mayBeBanned'

/** Faults in what every encoding has in common: the table, the loop, the change of policy. */
export const TABLE_MUTANTS: readonly Mutant[] = [
  mutant('the swap is two steps', 'take | take | take, one key', [1, 0], {
    file: 'atomics/atomics.ts',
    from: '  return atomic.cmpxchg<u64>(address, expected, next) == expected',
    to: '  if (atomic.load<u64>(address) != expected) return false\n  yieldPoint()\n  atomic.store<u64>(address, next)\n  return true',
  }),
  mutant(
    'the ordinary take does not look whether its swap worked',
    'take | take | take, one key',
    [1, 0],
    inTakes(
      'if (swap(entry + STATE, state, withValue(state, epoch, valueAt(next, us)))) return <f64>next',
      'swap(entry + STATE, state, withValue(state, epoch, valueAt(next, us))); return <f64>next',
    ),
  ),
  mutant(
    'the loop does not try again',
    'take | refund | take',
    [1, 0],
    inReplace('  if (swap(entry + STATE, state, word)) return 0\n', '  swap(entry + STATE, state, word)\n  if (true) return 0\n'),
  ),
  mutant(
    'the search reads the identity before the state',
    'peek | take that forgets another | peek',
    [1, 0],
    inTable(
      '      const state = load(entry + STATE)\n      if (state == NEVER_USED) return 0',
      '      const identity = load(entry)\n      const state = load(entry + STATE)\n      if (state == NEVER_USED) return 0',
    ),
    inTable('      if (fingerprintOf(load(entry)) == fingerprint) {', '      if (fingerprintOf(identity) == fingerprint) {'),
  ),
  mutant(
    'the ordinary take reads the identity before the state',
    'take | take-over, one entry',
    [1, 0],
    inTakes(
      `  const state = load(entry + STATE)\n  if (fingerprintOf(load(entry)) == fingerprint${QUICK}`,
      `  const identity = load(entry)\n  const state = load(entry + STATE)\n  if (fingerprintOf(identity) == fingerprint${QUICK}`,
    ),
  ),
  mutant(
    'a denial is not looked at again',
    'two costs of a newcomer | one entry in debt',
    [1, 0],
    inCas('    if (load(entry + STATE) != state || !isUnchanged(entry, ofBan)) return RETRY\n', ''),
  ),
  mutant(
    'an ordinary denial is not looked at again',
    'two costs of a newcomer | one entry in debt',
    [1, 0],
    inTakes('} else if (load(entry + STATE) == state) return -1.0', '} else return -1.0'),
  ),
  mutant(
    'there is no rescan after the mark',
    'first take x 3, one key',
    [2, 1],
    inClaim('if (isOnlyClaim(entry, fingerprint, home)) return', 'if (true) return'),
  ),
  mutant(
    'a member does not win over a mark',
    'first take x 3, one key',
    [2, 1],
    inClaim('        if (fingerprintOf(load(entry)) == fingerprint) return false', '        load(entry)'),
  ),
  mutant(
    'rivals both go on',
    'first take x 3, one key',
    [2, 1],
    inClaim('        if (beforeMine || !revoke(entry, state)) return false', '        load(entry)'),
  ),
  mutant(
    'generations stand still',
    'take | take that forgets it and owes as much',
    [1, 0],
    inWords('((mark + 1) & GENERATION_MASK)', '(mark & GENERATION_MASK)'),
  ),
  mutant(
    'a mark taken over looks like the one before',
    'newcomer | newcomer | take, full, denies newcomers',
    [1, 1],
    inWords('isMark(seen) ? seen + 1 : identity', 'isMark(seen) ? seen : identity'),
  ),
  mutant(
    'state words do not carry their owner',
    'take | take that forgets it and owes as much',
    [1, 0],
    inWords('((identity & OWNER_MASK) << OWNER_SHIFT) | value', 'value'),
  ),
  mutant(
    'the identity is written whatever stands there',
    'first take x 2, then another',
    [1, 0],
    inClaim('if (swap(entry, identity, next)) {', 'if (swap(entry, load(entry), next)) {'),
  ),
  mutant(
    'a mark is wiped, its identity left',
    'take-over | update | take',
    [0, 1],
    inClaim('  if (!writeIdentity(entry, mark, NO_KEY)) return\n', ''),
  ),
  mutant(
    'the first take is free',
    'first take x 3, one key',
    [0, 0],
    inInsert('stateWord(epoch, identity, firstValue)', 'stateWord(epoch, identity, 0)'),
  ),
  mutant(
    'idle time is saved up',
    'take | take-over | take',
    [0, 0],
    inTakes('const debt = max<i64>(debtAt(valueOf(state), us), 0)', 'const debt = debtAt(valueOf(state), us)'),
  ),
  mutant(
    'the time by which a key was forgotten is not published',
    'take | take-over | take, clocks apart',
    [0, 0],
    inInsert('    raise(base + TAKEOVER_HIGH, nowUs)\n', '    load(entry)\n'),
  ),
  mutant(
    'the time is published after the mark',
    'take | take-over | take, clocks apart',
    [0, 1],
    inInsert('    raise(base + TAKEOVER_HIGH, nowUs)\n', '    load(entry)\n'),
    inInsert(
      '  if (kind == LIVE) {\n    add(base + EVICTIONS, 1)',
      '  if (kind != FREE && kind != MARKED) raise(base + TAKEOVER_HIGH, nowUs)\n  if (kind == LIVE) {\n    add(base + EVICTIONS, 1)',
    ),
  ),
  mutant(
    'a newcomer goes by the time that was published before its rescan',
    'first take | first take | take-over by a late clock',
    [1, 1],
    inInsert(
      'const answer = stepNewcomer(entering, fingerprint, tokens, nowUs, bound)\n  if (!inserts || rebased',
      'const answer = debt\n  if (!inserts || rebased',
    ),
  ),
  mutant('a denied key is forgotten', 'refused newcomer | reset | refused newcomer', [0, 0], inTable(' && mayYield(debt)', '')),
  mutant('words of an older policy are read as they stand', 'take | looser update | take, second epoch', [0, 0], {
    file: 'algorithms/migrate-value.ts',
    from: 'lag == 0 ? valueOf(state) : migratedThrough(valueOf(state), lag, entry, ofBan, sequenceOf(epochWord))',
    to: 'valueOf(state)',
  }),
  mutant(
    'the policy is not looked at after the state',
    'take | update | take',
    [0, 0],
    inCas('  const state = seenState\n  refresh()\n', '  const state = seenState\n'),
    { file: 'policy/policy.ts', from: '  return load(base + EPOCH) == epochWord && headOf', to: '  return headOf' },
  ),
  mutant(
    'the ordinary take does not see a block',
    'take | block | take',
    [0, 0],
    inTakes(' && !mayBeBanned(fingerprint, nowUs) && tokens', ' && tokens'),
  ),
  mutant(
    'a newcomer forgets its own key, which has moved in meanwhile',
    'two costs of a newcomer | one entry in debt',
    [1, 0],
    inTable('      if (fingerprintOf(identity) == fingerprint) return pick(RESIDENT, entry, state, 0)\n', ''),
  ),
  mutant(
    'a call reports what an earlier one forgot',
    'take that forgets, take | take | reset',
    [2, 0],
    inCas('  clearEvicted()\n  let lost', '  let lost'),
    inInsert('  if (kind == RESIDENT) return AGAIN\n', '  if (lost == 0) setEvictedDebt(-1)\n  if (kind == RESIDENT) return AGAIN\n'),
  ),
  mutant('a change of policy does not sweep', 'take | nine updates', [0, 0], {
    file: 'table/migrate.ts',
    from: '    if (!migrateLine(lineAddress(line))) return false\n  }\n  raise(',
    to: '  }\n  raise(',
  }),
  mutant('the sweep leaves marks alone', 'first take | nine updates', [1, 0], {
    file: 'table/migrate.ts',
    from: 'if (isMark(state)) return revoke(entry, state)',
    to: 'if (isMark(state)) return true',
  }),
  mutant(
    'a key is taken out whatever it owes by then',
    'saved: save | take | take',
    [1, 0],
    inSaved(
      'evictWithRing(entry, state) : evict(entry, state))) continue',
      'evictWithRing(entry, load(entry + STATE)) : evict(entry, load(entry + STATE)))) continue',
    ),
    inSaved(
      '      if (hasRing ? !holds.areUnchanged(entry, state) : load(entry + STATE) != state) continue\n      if (!isUnchanged(entry, false)) continue\n',
      '',
    ),
  ),
  mutant(
    'two threads take out one key',
    'saved: save | save | refund',
    [1, 0],
    inSaved(
      'if (takesOut && !(hasRing ? evictWithRing(entry, state) : evict(entry, state))) continue',
      'if (takesOut && !hasRing) evict(entry, state)',
    ),
  ),
  mutant(
    'a loaded key takes the place of a take',
    'saved: load | take | peek',
    [1, 0],
    inSaved('return swap(entry + STATE, state, next)\n', 'return swap(entry + STATE, load(entry + STATE), next)\n'),
  ),
]
