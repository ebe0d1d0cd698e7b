import {
  BANNED_UNTIL, CONTENTIONS, DENY_WHEN_FULL, EPOCH, FIRST_LINES, LINES, LONG_AGO, OVERFLOW_COUNTERS, OVERFLOW_COUNTER_COUNT, OVERFLOW_LIMIT,
  OVERFLOW_WINDOW_US, SECOND_LINES, TAKEOVER_HIGH, base, openSection,
} from "./memory-map"
import { debt, detail, evictedDebt, givenPermit as permitGiven, givenUntilUs as untilGiven, waitUs as reservedIn, why } from "./results"
import { add, load, store } from "./atomics/atomics"
import { backOff } from "./atomics/back-off"
import * as kcas from "./atomics/kcas"
import { signalRelease, signalReleaseOfAll } from "./atomics/release-signal"
import { refresh, setGeneration as generationIs } from "./policy/policy"
import { UNITS_PER_NS, owedBy } from "./algorithms/call-rate"
import { held, lastEndUs, nextEnd as endAfter, tokensThere } from "./algorithms/hold-ring"
import { untilFree as usUntilFree, untilNew as usUntilNew } from "./algorithms/key-state"
import { CANCEL, PEEK, PENALIZE, REFUND, RESET } from "./algorithms/verbs"
import * as bans from "./table/bans"
import { cancelOnlyOf, change } from "./table/cas-loop"
import { changePermitOf } from "./table/change-permit"
import { homeLine, openTable } from "./table/layout"
import { clear, isAsNoted, loadSaved, note, readSpent, save } from "./table/saved-key"
import { find } from "./table/search"
import * as holds from "./table/holds"
import { changedHands as hasChangedHands, loadTable, saveBeside, saveEntries as saveTable } from "./table/saved-table"
import * as takes from "./table/takes"
import { IN_FORCE, update as putInForce } from "./table/update"

export {
  CAS_RETRIES, CONTENTIONS, DENY_WHEN_FULL, DESCRIPTORS, DESCRIPTOR_SIZE, ENTRY_SIZE, EPOCH, EVICTIONS, FIRST_LINES, GROWN, GROW_TO, KEYS,
  LINES, LINE_SIZE, MAX_KEYS, OVERFLOWS, OVERFLOW_BUDGET, OVERFLOW_COUNTERS, OVERFLOW_COUNTER_COUNT, OVERFLOW_DENIED, OVERFLOW_LIMIT,
  OVERFLOW_WINDOW_US, RECORD_CALENDAR, RECORD_CAPACITY, RECORD_COUNT_BITS, RECORD_DESCRIPTION, RECORD_ENCODING, RECORD_EPOCH,
  RECORD_EXTENSIONS, RECORD_GENERATION, RECORD_KEEPS_DEBT, RECORD_NUMBER_BITS, RECORD_SINCE_US, RECORD_SLOTS, RECORD_STRIDE, RECORD_TICK_US, RECORD_UNITS_PER_TOKEN,
  RECORD_UNITS_PER_US, RECORD_WINDOW_US, REFUSALS, RELEASED, RELEASED_BY_ALL, RELEASE_GROUPS, RELEASE_GROUP_COUNT, RELEASE_WATCHERS,
  SECOND_LINES, TABLE,
} from './memory-map'
export { ARRIVAL, BUCKET, CONCURRENCY, FIXED, LOG, SLIDING, WIDE } from './policy/encodings'
export { isWhole, policyRecord } from './policy/policy'
export { propose } from './policy/publish'
export { BANNED, CONTENDED, EVICTED, HELD, LATE, OVERFLOWED, REFUSED } from './results'
export { migrateAll } from './table/migrate'
export { countOverflow } from './table/overflow'
export { GIVEN_UP, IN_FORCE, OVERTAKEN, prepare } from './table/update'

/** Puts a proposed record in force from `nowUs` on. Returns IN_FORCE, OVERTAKEN or GIVEN_UP. */
export function update(record: usize, nowUs: f64, seenEpoch: f64): i32 {
  const outcome = putInForce(record, <i64>nowUs, <u64>seenEpoch)
  if (outcome == IN_FORCE) signalReleaseOfAll()
  return outcome
}

const UNITS_PER_MICROSECOND: i64 = UNITS_PER_NS * 1000
const UNITS_PER_MILLISECOND: i64 = UNITS_PER_MICROSECOND * 1000

/** Lays out a fresh, zeroed section of the memory. Publish a policy with `propose` and `update` before the first take. */
export function create(section: usize, lines: i32, denyWhenFull: bool): void {
  openSection(section)
  store(base + LINES, <u64>lines)
  store(base + DENY_WHEN_FULL, denyWhenFull ? 1 : 0)
  store(base + BANNED_UNTIL, <u64>LONG_AGO)
  store(base + TAKEOVER_HIGH, <u64>LONG_AGO)
  openTable()
}

/** Call right after {@link create}: the table begins with its first lines and uses the later parts when it needs them. */
export function addParts(firstLines: i32, secondLines: i32): void {
  store(base + FIRST_LINES, <u64>firstLines)
  store(base + SECOND_LINES, <u64>secondLines)
  openTable()
}

/** Call right after {@link create}: sets the counters for new keys that find no room, see overflow.ts. */
export function admitOverflow(counters: usize, count: i32, limit: f64, windowUs: f64): void {
  store(base + OVERFLOW_COUNTERS, <u64>counters)
  store(base + OVERFLOW_COUNTER_COUNT, <u64>count)
  store(base + OVERFLOW_LIMIT, <u64>limit)
  store(base + OVERFLOW_WINDOW_US, <u64>windowUs)
}

/** Opens a section that another thread has laid out. */
export function attach(section: usize): void {
  openSection(section)
  openTable()
  refresh()
}

/** Whether no other thread has the memory: true once it is made, false before a handle is given. */
export function setAlone(alone: bool): void {
  kcas.setAlone(alone)
}

/** Loads the policy in force; calls the host's `policyChanged` if it differs from this thread's copy. */
export function look(): void {
  if (load(base + EPOCH) != 0) refresh()
}

/** A take under a bucket or GCRA. */
export function take(low: u32, high: u32, nowUs: f64, tokens: i32): f64 {
  return takes.take(fingerprintFrom(low, high), homeLine(low), tokens, <i64>nowUs)
}

/** A take under any other encoding. */
export function takeAny(low: u32, high: u32, nowUs: f64, tokens: i32): f64 {
  return takes.takeAny(fingerprintFrom(low, high), homeLine(low), tokens, <i64>nowUs)
}

/** A take of any number of tokens. Only this one reads a double: to convert it costs the ordinary take 4 %. */
export function takeMany(low: u32, high: u32, nowUs: f64, tokens: f64): f64 {
  return takes.takeUnlessBanned(fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs)
}

export function peek(low: u32, high: u32, nowUs: f64, tokens: f64): f64 {
  return change(PEEK, fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs, 0)
}

export function refund(low: u32, high: u32, nowUs: f64, tokens: f64): f64 {
  const answer = change(REFUND, fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs, 0)
  signalRelease(high)
  return answer
}

export function penalize(low: u32, high: u32, nowUs: f64, tokens: f64): f64 {
  return change(PENALIZE, fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs, 0)
}

export function reset(low: u32, high: u32, nowUs: f64): f64 {
  const answer = change(RESET, fingerprintFrom(low, high), homeLine(low), 0, <i64>nowUs, 0)
  signalRelease(high)
  return answer
}

/** A take that may lie up to `mostUs` in the future; `waitUs` returns how far. */
export function reserve(low: u32, high: u32, nowUs: f64, tokens: f64, mostUs: f64): f64 {
  return takes.reserve(fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs, <i64>mostUs)
}

/**
 * Gives back a reservation; -1 - debt when nothing was given back. Buckets and GCRA: `tokens` are units, and the debt must be at most `bound`. Other encodings: `tokens`
 * are tokens, given back if they still count at `bound`, the time that they were reserved for. Of another `generation` than that of
 * the policy in force nothing is given back.
 */
export function cancel(low: u32, high: u32, nowUs: f64, tokens: f64, bound: f64, generation: f64): f64 {
  cancelOnlyOf(<i64>generation)
  const answer = change(CANCEL, fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs, <i64>bound)
  if (answer >= 0) signalRelease(high)
  return answer
}

/**
 * A take whose rate comes with the call: `burst` tokens at once, then one every `intervalNs` whole nanoseconds. 0 tokens change
 * nothing. Returns 0 or more if it passes, less if not, NaN without an answer; the next three functions say the rest. The longest
 * wait, `burst * intervalNs`, must be at most the longest of the table, and `tokens` at most `burst + 1`.
 */
export function takeAtRate(low: u32, high: u32, nowUs: f64, intervalNs: f64, burst: f64, tokens: f64): f64 {
  const interval = <i64>intervalNs * UNITS_PER_NS
  tolerance = <i64>burst * interval
  amount = <i64>tokens * interval
  const fingerprint = fingerprintFrom(low, high)
  if (amount > 0) return takes.takeOfCall(fingerprint, homeLine(low), interval, tolerance, amount, <i64>nowUs)
  const answer = change(PEEK, fingerprint, homeLine(low), 0, <i64>nowUs, 0)
  return answer >= 0 && owedBy(debt) > tolerance ? -1 : answer
}

// About the last take at a rate. Times are truncated.

let tolerance: i64 = 0
let amount: i64 = 0

/** Whole microseconds of waiting that are left to spend; negative when the key owes more than the rate of the call allows. */
export function leftUs(): f64 {
  return <f64>((tolerance - owedBy(debt)) / UNITS_PER_MICROSECOND)
}

/** Whole milliseconds until the key owes nothing. */
export function owedMs(): f64 {
  return <f64>(owedBy(debt) / UNITS_PER_MILLISECOND)
}

/** Whole milliseconds until a take that did not pass would; -1 if it never would. */
export function lateMs(): f64 {
  return amount > tolerance ? -1 : <f64>((owedBy(debt) + amount - tolerance) / UNITS_PER_MILLISECOND)
}

/** Whether the key has an entry in the table. */
export function hasKey(low: u32, high: u32): bool {
  return find(fingerprintFrom(low, high), homeLine(low)) != 0
}

/**
 * Puts a key as the numbers of saved-state.ts. Returns 1, or 0 for a key that owes nothing and is not banned. `takesOut`: the key leaves
 * the table.
 */
export function saveKey(low: u32, high: u32, nowUs: f64, takesOut: bool): f64 {
  const saved = save(fingerprintFrom(low, high), homeLine(low), <i64>nowUs, takesOut)
  if (takesOut && saved > 0) signalRelease(high)
  return saved
}

/**
 * Adds the key whose numbers the host reads. Returns 1, or 0 when they are none that a key under the algorithm in force could have; 2 when
 * another policy of the algorithm saved it: what is spent is then at most the burst.
 */
export function loadKey(low: u32, high: u32, nowUs: f64): f64 {
  return loadSaved(fingerprintFrom(low, high), homeLine(low), <i64>nowUs)
}

/** Of a key whose numbers the host reads, under the policy in force, the tokens that it has spent; the next numbers are those of its holds. */
export function spentInSaved(nowUs: f64): f64 {
  return <f64>readSpent(<i64>nowUs)
}

// A table that holds one key at a time, for one thread.

/** Forgets the key. */
export function clearKey(low: u32, high: u32, nowUs: f64): void {
  refresh()
  clear(fingerprintFrom(low, high), homeLine(low), <i64>nowUs)
}

/** What is charged from now on is of this generation; of what was charged under another nothing comes back. */
export function setGeneration(generation: f64): void {
  generationIs(<i64>generation)
}

/** Notes the key as it is now, for {@link isKeyAsNoted}. */
export function noteKey(low: u32, high: u32): void {
  note(fingerprintFrom(low, high), homeLine(low))
}

/** Whether the key is as it was noted. Its ban does not count. */
export function isKeyAsNoted(low: u32, high: u32): bool {
  return isAsNoted(fingerprintFrom(low, high), homeLine(low))
}

// The whole table.

/** Puts the entries from number `from` up to `to`. False: other threads kept changing one. */
export function saveEntries(from: i32, to: i32, nowUs: f64): bool {
  return saveTable(from, to, <i64>nowUs)
}

/** Whether an entry whose key was saved, or with fingerprint 0 one that was never used, has another key since. */
export function changedHands(number: i32, fingerprint: f64): bool {
  return hasChangedHands(number, <u64>fingerprint)
}

/** Puts what is beside the keys. */
export function saveBesides(): void {
  saveBeside()
}

/** Fills an empty table that no other thread uses, with the policy in force. False: no table that was saved under its algorithm. */
export function loadEntries(nowUs: f64): bool {
  return loadTable(<i64>nowUs)
}

/** Bans a key for `us` microseconds; 0 lifts the ban. Returns the microseconds left. */
export function ban(low: u32, high: u32, nowUs: f64, us: f64): f64 {
  const left = bans.ban(fingerprintFrom(low, high), homeLine(low), <i64>us, <i64>nowUs)
  if (us == 0) signalRelease(high)
  return left
}

/** Microseconds until the key's ban ends. */
export function banLeft(low: u32, high: u32, nowUs: f64): f64 {
  return bans.banLeft(fingerprintFrom(low, high), homeLine(low), <i64>nowUs)
}

// The next two are about the key of the last call. Buckets and GCRA do not need them: the debt gives both waits.

/** Microseconds until `tokens` would pass. */
export function untilFree(tokens: f64): f64 {
  return <f64>usUntilFree(<i64>tokens)
}

/** Microseconds until the key owes nothing. */
export function untilNew(): f64 {
  return <f64>usUntilNew()
}

/** Microseconds until the last reservation may be used. */
export function waitUs(): f64 {
  return <f64>reservedIn
}

// Takes in several sections that commit together.

/** A descriptor, or 0 when all are in use and the memory cannot grow. */
export function openDescriptor(): usize {
  return kcas.openDescriptor()
}

/** Records a take in the descriptor. Its answer holds if the descriptor commits. */
export function stage(descriptor: usize, low: u32, high: u32, nowUs: f64, tokens: f64): f64 {
  return takes.stage(descriptor, fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs)
}

/** True: all staged changes are made. False: none is. */
export function commit(descriptor: usize): bool {
  return kcas.commit(descriptor)
}

export function closeDescriptor(descriptor: usize): void {
  kcas.closeDescriptor(descriptor)
}

/** Lets other threads run, for longer the more attempts were lost to them. */
export function yieldAfter(lost: i32): void {
  backOff(lost)
}

/** Counts a call that gave up. */
export function giveUp(): void {
  add(base + CONTENTIONS, 1)
}

// Work that is open, see table/holds.ts.

/** Finds or makes a place for an end of holds. Returns the end, or a later one. */
export function prepareHold(low: u32, high: u32, nowUs: f64, endUs: f64): f64 {
  return holds.prepare(fingerprintFrom(low, high), homeLine(low), <i64>endUs, <i64>nowUs)
}

/** Records a hold in the descriptor. Returns 0 or more if there is room; -Infinity: prepare it again. */
export function stageHold(descriptor: usize, low: u32, high: u32, nowUs: f64, tokens: f64, endUs: f64): f64 {
  kcas.stageIn(descriptor)
  const answer = holds.hold(fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>endUs, <i64>nowUs)
  kcas.stageIn(0)
  return answer
}

/** Holds tokens of a key that comes from another algorithm, whatever it owes. Returns 1; where there is no room nothing is held. */
export function carryHold(low: u32, high: u32, nowUs: f64, tokens: f64, endUs: f64): f64 {
  return holds.holdCarried(fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>endUs, <i64>nowUs)
}

/** What the hold that was recorded knows its ring by. */
export function ringOpened(): f64 {
  return <f64>holds.ringOpened
}

/**
 * Spends of a hold, then of what is free; records it in the descriptor, if that is not 0. Returns 0 or more if it is spent. `how`: 0 what there is, 1
 * all the same, 2 of a banned key, too.
 */
export function spendHold(
  descriptor: usize, low: u32, high: u32, nowUs: f64, tokens: f64, rest: f64, endUs: f64, ring: f64, how: i32,
): f64 {
  kcas.stageIn(descriptor)
  const answer = holds.spend(
    fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>nowUs, <i64>rest, <i64>endUs, <u64>ring, how != 0, how == 2,
  )
  kcas.stageIn(0)
  if (how != 0) signalRelease(high)
  return answer
}

/** Moves the tokens of a hold to a later end. Returns the end that it has then; 0 if it had ended. */
export function renewHold(low: u32, high: u32, nowUs: f64, tokens: f64, fromUs: f64, toUs: f64, ring: f64): f64 {
  return holds.renew(fingerprintFrom(low, high), homeLine(low), <i64>tokens, <i64>fromUs, <i64>toUs, <u64>ring, <i64>nowUs)
}

// About the key of the last call, after HELD.

/** What all its holds have left, and when the last of them ends. */
export function heldTokens(): f64 {
  return <f64>held
}

export function heldUntilUs(): f64 {
  return <f64>lastEndUs
}

/** The next time after `us` at which holds end, and the tokens that come free then; 0 when there is none. */
export function nextEnd(us: f64): f64 {
  return <f64>endAfter(<i64>us)
}

export function tokensAtEnd(): f64 {
  return <f64>tokensThere
}

// Permits.

/** The permit that the last take gave: its handle, and when it expires. */
export function givenPermit(): f64 {
  return <f64>permitGiven
}

export function givenUntilUs(): f64 {
  return <f64>untilGiven
}

/** Renews a permit, or takes `tokens` from it; taking all of them releases it. Returns 1, or 0 if the permit had ended. */
export function changePermit(low: u32, high: u32, nowUs: f64, renew: bool, given: f64, untilUs: f64, tokens: f64): f64 {
  const done = changePermitOf(fingerprintFrom(low, high), homeLine(low), <i64>nowUs, renew, <i64>given, <i64>untilUs, <i64>tokens)
  if (tokens > 0 && done > 0) signalRelease(high)
  return done
}

/** The word at an address, with any multi-word swap of it resolved first: for a copy of the memory. */
export function resolvedWord(address: usize): u64 {
  return kcas.resolved(address)
}

export function whyUnanswered(): i32 {
  return why
}

export function detailOfUnanswered(): f64 {
  return detail
}

/** After EVICTED: the debt of the evicted key, in units. */
export function forgotten(): f64 {
  return <f64>evictedDebt
}

/** 48 bits, even and not 0. The upper half of the low word also chooses the line. */
@inline function fingerprintFrom(low: u32, high: u32): u64 {
  return max<u64>(((<u64>high << 16) | <u64>(low & 0xffff)) & ~1, 2)
}
