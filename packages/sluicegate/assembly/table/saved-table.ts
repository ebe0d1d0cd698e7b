import { beginKey, endKey, savedEntry } from "../host"
import {
  CAS_RETRIES, CONTENTIONS, ENTRY_SIZE, EVICTIONS, GROWN, KEYS, LINES, OVERFLOWS, OVERFLOW_BUDGET, OVERFLOW_COUNTERS, OVERFLOW_COUNTER_COUNT,
  REFUSALS, STATE, TAKEOVER_HIGH, base, tableAddress,
} from "../memory-map"
import { ENTRIES_PER_LINE } from "../build-flags"
import { add, load, raise, store } from "../atomics/atomics"
import { backOff } from "../atomics/back-off"
import { resolved } from "../atomics/kcas"
import { NEVER_USED, NO_KEY, fingerprintOf, firstIdentity, isBan, isHeld, isMark, lagOf, stateWord, valueOf } from "../atomics/words"
import { CONCURRENCY, LOG, WIDE } from "../policy/encodings"
import { extensionOf } from "../policy/extension"
import { baseUs, encoding, epoch, refresh, sinceBase } from "../policy/policy"
import { idleValue, isUnchanged } from "../algorithms/key-state"
import { emptyHeader, headerOf } from "../algorithms/log-ring"
import { wordOf } from "../algorithms/previous-count"
import { banDebtAt, banValueAt } from "../algorithms/rate"
import * as holds from "../algorithms/saved-holds"
import { loadLog } from "../algorithms/saved-log"
import { MOST_NUMBER, beginReading, next, nextWide, put, putWide, sound, unsound } from "../algorithms/saved-numbers"
import * as permits from "../algorithms/saved-permits"
import { loadedValue, readState, readTerms, saveState, saveTerms } from "../algorithms/saved-state"
import { before, windowBefore } from "../algorithms/saved-window"
import { addToBanFilter } from "./ban-filter"
import { partOf } from "./layout"
import { holdLoaded } from "./holds"
import { migrate } from "./migrate"
import { rebased } from "./update"

// A whole table as numbers, for one of the same lines. Keys stay in their entries: an entry does not say where its key's search begins.
//
//   terms | entries, each: 4 * run + NEVER or FREE, for so many entries in a row | KEY, or 4 + KEY with holds, fingerprint, numbers of
//   saved-state.ts | BAN, fingerprint, end | number of entries to be freed, and the distance of each from the one before | figures | latest takeover | budget of new keys without room |
//   number of their counters, and each
//
// While it is saved, keys come and go. A key that was moved could be saved twice, or behind an entry that was never used, where no search
// comes. So each entry is looked at again at the end: one that has another key by then belonged to no key at some moment in between, and
// is freed.

const NEVER: i64 = 0
const FREE: i64 = 1
const KEY: i64 = 2
const BAN: i64 = 3
const KINDS: i64 = 4

const MOST_FINGERPRINT: i64 = (1 << 48) - 1
const MOST_WORD: i64 = 1 << 62
/** Looks at an entry that others keep changing. */
const MOST_LOOKS: i32 = 10000

@inline function entryAt(number: i32): usize {
  return tableAddress + <usize>number * ENTRY_SIZE
}

function entries(): i32 {
  return <i32>load(base + LINES) * ENTRIES_PER_LINE
}

let runKind: i64 = 0
let run: i64 = 0

function endRun(): void {
  if (run > 0) put(run * KINDS + runKind)
  run = 0
}

function count(kind: i64): void {
  if (kind != runKind) endRun()
  runKind = kind
  run++
}

/** Puts the entries from number `from` up to `to`. False: other threads kept changing one. */
export function saveEntries(from: i32, to: i32, nowUs: i64): bool {
  refresh()
  rebased(nowUs)
  beginKey()
  run = 0
  if (from == 0) saveTerms()
  for (let number = from; number < to; number++) {
    // Entries of a line are used in order.
    if (number % ENTRIES_PER_LINE == 0 && number + ENTRIES_PER_LINE <= to && load(entryAt(number) + STATE) == NEVER_USED) {
      for (let i = 0; i < ENTRIES_PER_LINE; i++) count(NEVER)
      number += ENTRIES_PER_LINE - 1
    } else if (!saveEntry(number, nowUs)) return false
  }
  endRun()
  endKey()
  return true
}

function saveEntry(number: i32, nowUs: i64): bool {
  const entry = entryAt(number)
  let begun = false
  for (let look = 0; look < MOST_LOOKS; look++) {
    if (look > 16) backOff(look)
    const state = resolved(entry + STATE)
    const identity = load(entry)
    const fingerprint = fingerprintOf(identity)
    if (begun) beginKey()
    if (state == NEVER_USED) {
      count(NEVER)
      return true
    }
    // Under a mark the key is being forgotten, or has not come yet.
    if (isMark(state) || fingerprint == NO_KEY) {
      count(FREE)
      return true
    }
    refresh()
    if (lagOf(state, epoch) != 0) {
      migrate(entry)
      continue
    }
    const us = sinceBase(nowUs)
    const left = isBan(fingerprint) ? banDebtAt(valueOf(state), us) : 0
    if (!begun) {
      endRun()
      endKey()
      begun = true
    }
    if (isBan(fingerprint)) {
      put(BAN)
      put(<i64>fingerprint)
      put(max<i64>(us + baseUs + left, 0))
    } else {
      const withHolds = isHeld(state) && holds.hasHolds(entry, nowUs)
      put(KEY + (withHolds ? KINDS : 0))
      put(<i64>fingerprint)
      saveState(entry, state, nowUs)
      if (withHolds) holds.saveHolds()
      if (isHeld(state) && !holds.areUnchanged(entry, state)) continue
    }
    if (load(entry + STATE) != state || load(entry) != identity || !isUnchanged(entry, isBan(fingerprint))) continue
    endKey()
    savedEntry(number, <f64>fingerprint)
    return true
  }
  return false
}

/** See above. The state is read first: a mark goes only after the identity has changed. */
export function changedHands(number: i32, fingerprint: u64): bool {
  const entry = entryAt(number)
  const state = load(entry + STATE)
  if (fingerprint == NO_KEY) return state != NEVER_USED
  return isMark(resolved(entry + STATE)) || fingerprintOf(load(entry)) != fingerprint
}

/** Puts what is beside the keys. */
export function saveBeside(): void {
  beginKey()
  for (let i = 0; i < COUNTS; i++) put(<i64>load(countAt(i)))
  putWide(<i64>load(base + TAKEOVER_HIGH))
  const budget = resolved(base + OVERFLOW_BUDGET)
  putWide(<i64>budget)
  // The budget changes with each of them: zero, so are they all.
  const counters = budget == 0 ? 0 : <i32>load(base + OVERFLOW_COUNTER_COUNT)
  put(counters)
  for (let i = 0; i < counters; i++) putWide(<i64>resolved(counterAt(i)))
  endKey()
}

/** Figures, which decide nothing. */
const COUNTS: i32 = 5

function countAt(i: i32): usize {
  return base + (i == 0 ? EVICTIONS : i == 1 ? REFUSALS : i == 2 ? OVERFLOWS : i == 3 ? CAS_RETRIES : CONTENTIONS)
}

@inline function counterAt(i: i32): usize {
  return <usize>load(base + OVERFLOW_COUNTERS) + <usize>i * 8
}

/** Fills an empty table that no other thread uses. False: these are no numbers of such a table. */
export function loadTable(nowUs: i64): bool {
  refresh()
  rebased(nowUs)
  beginReading()
  readTerms()
  const end = entries()
  let number: i32 = 0
  while (number < end && sound) {
    const tag = next(MOST_NUMBER)
    const kind = tag % KINDS
    if (kind == KEY || kind == BAN) {
      const hasHolds = tag == KEY + KINDS
      if (tag >= KINDS && !hasHolds) unsound()
      else if (kind == KEY) loadKey(entryAt(number), hasHolds, nowUs)
      else loadBan(entryAt(number), nowUs)
      number++
    } else {
      const length = tag / KINDS
      if (length == 0 || length > <i64>(end - number)) unsound()
      else if (kind == FREE) for (let i: i32 = 0; i < <i32>length; i++) free(entryAt(number + i))
      number += <i32>min<i64>(length, <i64>(end - number))
    }
  }
  freeOthers(end)
  loadBeside()
  endKey()
  return sound
}

function free(entry: usize): void {
  if (fingerprintOf(load(entry)) != NO_KEY) add(base + KEYS, -1)
  enter(entry, NO_KEY, stateWord(epoch, NO_KEY, idleValue()))
}

function enter(entry: usize, identity: u64, state: u64): void {
  const part = partOf(entry)
  if (part > 0) raise(base + GROWN, part)
  store(entry, identity)
  store(entry + STATE, state)
}

function loadBan(entry: usize, nowUs: i64): void {
  const fingerprint = <u64>next(MOST_FINGERPRINT)
  const untilUs = next(MOST_NUMBER)
  if (!isBan(fingerprint)) unsound()
  if (!sound) return
  const identity = firstIdentity(fingerprint, 0)
  const us = sinceBase(nowUs)
  if (untilUs > nowUs) addToBanFilter(fingerprint & ~1, untilUs)
  enter(entry, identity, stateWord(epoch, identity, banValueAt(untilUs - (us + baseUs), us)))
  add(base + KEYS, 1)
}

function loadKey(entry: usize, hasHolds: bool, nowUs: i64): void {
  const fingerprint = <u64>next(MOST_FINGERPRINT)
  if (fingerprint == NO_KEY || isBan(fingerprint)) unsound()
  endKey()
  readState(nowUs)
  if (!sound) return
  const identity = firstIdentity(fingerprint, encoding == CONCURRENCY ? permits.owner : 0)
  add(base + KEYS, 1)
  if (encoding == LOG) {
    const state = stateWord(epoch, identity, 0)
    store(headerOf(entry), emptyHeader(identity))
    enter(entry, identity, state)
    beginKey()
    if (!loadLog(entry, state, nowUs)) unsound()
  } else if (encoding == CONCURRENCY) {
    let word = stateWord(epoch, identity, 0)
    enter(entry, identity, word)
    beginKey()
    permits.skipPermits(0)
    for (let i: i64 = 0; i < permits.count && sound; i++) {
      if (!permits.loadPermit(entry, word, sinceBase(nowUs), nowUs)) unsound()
      word = permits.after
    }
  } else {
    const value = loadedValue(nowUs)
    if (encoding == WIDE) store(extensionOf(entry), wordOf(windowBefore, before))
    enter(entry, identity, stateWord(epoch, identity, value))
  }
  if (hasHolds) loadHolds(entry, nowUs)
}

function loadHolds(entry: usize, nowUs: i64): void {
  if (encoding == CONCURRENCY) unsound()
  for (let left = holds.readCount(); left > 0 && sound; left--) {
    holds.readHold()
    if (holds.isTooFar(nowUs)) unsound()
    else if (holds.endUs > nowUs && holds.tokens > 0) holdLoaded(entry, holds.tokens, holds.endUs, nowUs)
  }
}

function freeOthers(end: i32): void {
  const freed = next(end)
  let number: i64 = -1
  for (let i: i64 = 0; i < freed && sound; i++) {
    number += next(end) + 1
    if (number >= <i64>end) unsound()
    else free(entryAt(<i32>number))
  }
}

function loadBeside(): void {
  for (let i = 0; i < COUNTS; i++) store(countAt(i), <u64>next(MOST_NUMBER))
  const takeover = nextWide(MOST_WORD)
  const budget = nextWide(MOST_WORD)
  const counters = next(<i64>load(base + OVERFLOW_COUNTER_COUNT))
  if (budget < 0) unsound()
  if (!sound) return
  raise(base + TAKEOVER_HIGH, takeover)
  store(base + OVERFLOW_BUDGET, <u64>budget)
  for (let i = 0; i < <i32>counters && sound; i++) {
    const counter = nextWide(MOST_WORD)
    if (counter < 0) unsound()
    else store(counterAt(i), <u64>counter)
  }
}
