import { STATE } from "../memory-map"
import { load } from "../atomics/atomics"
import { resolved, swapBoth } from "../atomics/kcas"
import { withValue } from "../atomics/words"
import { baseUs, capacity, countBits, epoch, latestUs, slots, standing, tickUs, windowTicks, windowUs } from "../policy/policy"
import * as ring from "./log-ring"
import { MOST_NUMBER, MOST_US, next, nextSigned, put, putSigned, sound, unsound } from "./saved-numbers"
import * as log from "./sliding-log"

// A saved log. Terms: window | limit. Of the key: time of the newest request | number of requests, then of each, the oldest first: microseconds before
// the newest time | cost. Only requests that still count.

const MOST_WINDOW_US: i64 = (1 << 45) - 1
const MOST_REQUESTS: i64 = 1 << 18
const MOST_COST: i64 = (1 << 21) - 1

export function saveTerms(): void {
  put(windowUs)
  put(capacity)
}

export function saveLog(entry: usize, value: u64, us: i64): void {
  log.debtOf(entry, value, us)
  putSigned(log.lastEver() * tickUs)
  const inRing = log.used == 0 ? 0 : ring.held - log.first
  const loose = log.used == 0 ? <i64>0 : log.loose
  put(inRing + (loose > 0 ? 1 : 0))
  let cost = log.over
  for (let i = ring.held - inRing; i < ring.held; i++) {
    const upTo = ring.costUpTo(i)
    put(ring.ageOf(i, log.lastEver()) * tickUs)
    put(log.wrapped(upTo - cost))
    cost = upTo
  }
  if (loose == 0) return
  put(0)
  put(loose)
}

let fromWindowUs: i64 = 0
let fromCapacity: i64 = 0
let lastUs: i64 = 0
let requests: i64 = 0
/** Of the requests that count at the time of loading: their cost, and how many they are. */
export let spent: i64 = 0
let room: i64 = 0
/** Of the log last read: it waits for a time in which nothing is booked any more, and opens as one that is full now: migrate-log.ts. */
let opensFull: bool = false

export function readTerms(): void {
  fromWindowUs = next(MOST_WINDOW_US)
  fromCapacity = next(MOST_NUMBER)
}

/** Whether the terms last read are those in force. */
export function areOwnTerms(): bool {
  return fromWindowUs == windowUs && fromCapacity == capacity
}

function readHead(): void {
  lastUs = nextSigned(MOST_US)
  requests = next(MOST_REQUESTS)
}

let ageUs: i64 = 0
let cost: i64 = 0

function readRequest(): void {
  const before = ageUs
  ageUs = next(MOST_US)
  cost = next(MOST_COST)
  // The oldest first.
  if (ageUs > before || cost == 0) unsound()
}

/** Whether the request last read counts at `nowUs`: under a longer window what has expired must not come back. */
function counts(nowUs: i64): bool {
  if ((ageUs + tickUs - 1) / tickUs >= windowTicks) return false
  return lastUs - ageUs + fromWindowUs > nowUs || areOwnTerms()
}

/** Reads all once, and counts what is to be loaded. */
export function readLog(us: i64): void {
  const nowUs = standing(us)
  readHead()
  spent = 0
  room = 0
  ageUs = MOST_US
  for (let i: i64 = 0; i < requests && sound; i++) {
    readRequest()
    if (!counts(nowUs)) continue
    spent += cost
    room++
  }
  const nowTick = (nowUs + tickUs - 1) / tickUs
  const isAhead = (lastUs + tickUs - 1) / tickUs > nowTick
  const isEmpty = requests == 0 || (lastUs - ageUs + tickUs - 1) / tickUs <= nowTick
  opensFull = isAhead && isEmpty && (capacity > fromCapacity || fromWindowUs != windowUs)
  if (opensFull) spent = min<i64>(fromCapacity, (<i64>1 << countBits) - 1)
}

/**
 * Writes the requests into the ring of a key that has an empty one and the state `state`, then state and header together. The numbers
 * are read again. False: try again.
 */
export function loadLog(entry: usize, state: u64, us: i64): bool {
  const nowUs = standing(us)
  const seen = resolved(ring.headerOf(entry))
  if (load(entry + STATE) != state) return false
  ring.takeHeader(seen)
  if (opensFull) {
    return loaded(entry, state, seen, (nowUs + tickUs - 1) / tickUs, spent, ring.headerWith(0, 0, 0, true, true))
  }
  readHead()
  ageUs = MOST_US
  const mostCost = (<i64>1 << countBits) - 1
  const target = ring.headerOf(entry) + 8
  const lastEver = (min<i64>(lastUs, latestUs()) + tickUs - 1) / tickUs
  let left = spent
  let leftRoom = room
  let place: i64 = 0
  let total: i64 = 0
  for (let i: i64 = 0; i < requests; i++) {
    readRequest()
    if (!counts(nowUs)) continue
    left -= cost
    leftRoom--
    // Of a log too small for all the oldest are left out: by the time they would matter again, they have expired.
    const kept = min<i64>(cost, mostCost - left)
    if (leftRoom >= slots || kept <= 0) continue
    total += kept
    const word = ring.slotOf(lastEver - ageUs / tickUs, total)
    if (!ring.fill(entry, state, target + <usize>(place << 3), word)) return false
    place++
  }
  return loaded(entry, state, seen, lastEver, total, ring.headerWith(max<i64>(place - 1, 0), place, total, true, true))
}

function loaded(entry: usize, state: u64, seen: u64, lastEver: i64, total: i64, header: u64): bool {
  const tick = min<i64>(max<i64>(lastEver - baseUs / tickUs, 0), (<i64>1 << (56 - countBits)) - 1)
  const value = (<u64>tick << <u64>countBits) | <u64>total
  return swapBoth(entry + STATE, state, withValue(state, epoch, value), ring.headerOf(entry), seen, header)
}
