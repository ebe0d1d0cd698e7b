import { EXPLORED } from "../build-flags"
import { pause } from "../host"
import { CAS_RETRIES, DESCRIPTORS, DESCRIPTOR_COUNT, DESCRIPTOR_SIZE, MORE_DESCRIPTORS, base } from "../memory-map"
import { add, load, store, swap } from "./atomics"
import { loadPlain, storePlain } from "./plain"
import { REFERENCE, isReference } from "./words"

// Multi-word compare-and-swap: several words change together or not at all.
//
// A thread opens a descriptor and writes down each word's address, expected value and next value. It swaps a reference to the
// descriptor into the words, one after another. Then it swaps the descriptor's status from UNDECIDED to COMMITTED: that is the
// moment at which all words change. Then it swaps each reference for the word's next value. A thread that meets a reference does
// not wait for the owner. If the descriptor is decided, it finishes the word itself. If not, it gives the owner a moment and then
// aborts the descriptor. So a thread that dies here blocks no other, and an aborted owner starts again.
//
// Only the owner puts a reference anywhere, each once, and none after the descriptor is decided. The owner opens the descriptor
// again only when none of its references stands in any word. So a reference that stands tells the truth about its word, and never
// returns: each opening has another turn. The words of a descriptor are written before its reference is anywhere and read after
// one was found, so plain accesses suffice; what a thread reads while the descriptor is opened again is not used. If a thread dies
// within, its descriptor stays unused; when none is free, the memory grows by a page of them.
//
// Reference: T. Harris, K. Fraser, I. Pratt, "A practical multi-word compare-and-swap operation", 2002. There other threads help
// to put the references in, which takes a second kind of descriptor and one more swap per word.

const STATUS: usize = 0
const COUNT: usize = 8
const WORDS: usize = 16
const WORD_SIZE: usize = 24
const EXPECTED: usize = 8
const NEXT: usize = 16
/** Eight policies, and of each at most the state, a word beside it, the ring word and a sum. */
const MOST_WORDS: u64 = 32

const OUTCOME_BITS: u64 = 2
const OUTCOME_MASK: u64 = 3
const FREE: u64 = 0
const UNDECIDED: u64 = 1
const COMMITTED: u64 = 2
const ABORTED: u64 = 3

const TURN_BITS: u64 = 39
const TURN_MASK: u64 = (1 << 39) - 1

/** Reads of an undecided descriptor before another thread aborts it. */
const PATIENCE: i32 = EXPLORED ? 1 : 16

const PAGE_SIZE: usize = 65536

/** Whether no other thread has this memory: then nobody comes between, and plain accesses do. */
let isAlone: bool = false

/** Says so, and from when on it is so no more: before another thread is given the memory. */
export function setAlone(alone: bool): void {
  isAlone = alone
}

/** The descriptor used last: the likeliest to be free. */
let likely: i32 = 0

/** A descriptor for this thread, or 0 when all are taken and the memory cannot grow. */
export function openDescriptor(): usize {
  for (let i = 0; i < DESCRIPTOR_COUNT; i++) {
    const place = (likely + i) % DESCRIPTOR_COUNT
    const descriptor = base + DESCRIPTORS + <usize>place * DESCRIPTOR_SIZE
    if (!isOpened(descriptor)) continue
    likely = place
    return descriptor
  }
  return openAnother()
}

function isOpened(descriptor: usize): bool {
  const status = load(descriptor + STATUS)
  if ((status & OUTCOME_MASK) != FREE) return false
  const opened = ((turnOf(status) + 1) << OUTCOME_BITS) | UNDECIDED
  if (isAlone) storePlain(descriptor + STATUS, opened)
  else if (!swap(descriptor + STATUS, status, opened)) return false
  storePlain(descriptor + COUNT, 0)
  return true
}

/** A descriptor from the added pages. The first place of a page holds the address of the next page. */
function openAnother(): usize {
  let link = base + MORE_DESCRIPTORS
  while (true) {
    if (load(link) == 0) {
      const page = memory.grow(1)
      if (page < 0) return 0
      // If this swap is lost, the page is wasted.
      swap(link, 0, <u64>page * PAGE_SIZE)
    }
    const page = <usize>load(link)
    for (let descriptor = page + DESCRIPTOR_SIZE; descriptor < page + PAGE_SIZE; descriptor += DESCRIPTOR_SIZE) {
      if (isOpened(descriptor)) return descriptor
    }
    link = page
  }
}

/** Adds one word to change. */
export function addWord(descriptor: usize, address: usize, expected: u64, next: u64): void {
  const count = loadPlain(descriptor + COUNT)
  if (count == MOST_WORDS) unreachable()
  const word = wordAt(descriptor, count)
  storePlain(word, <u64>address)
  storePlain(word + EXPECTED, expected)
  storePlain(word + NEXT, next)
  storePlain(descriptor + COUNT, count + 1)
}

/** Changes all words or none; then frees the descriptor. */
export function commit(descriptor: usize): bool {
  if (isAlone) return commitAlone(descriptor)
  const status = load(descriptor + STATUS)
  const reference = referenceTo(descriptor, status)
  const count = loadPlain(descriptor + COUNT)
  let placed: u64 = 0
  while (placed < count && swap(<usize>loadPlain(wordAt(descriptor, placed)), loadPlain(wordAt(descriptor, placed) + EXPECTED), reference)) placed++
  const done = placed == count && swap(descriptor + STATUS, status, withOutcome(status, COMMITTED))
  // Before the references go: a thread that still finds one must find it decided.
  if (!done) store(descriptor + STATUS, withOutcome(status, ABORTED))
  for (let i: u64 = 0; i < placed; i++) {
    const word = wordAt(descriptor, i)
    swap(<usize>loadPlain(word), reference, loadPlain(word + (done ? NEXT : EXPECTED)))
  }
  store(descriptor + STATUS, withOutcome(status, FREE))
  return done
}

function commitAlone(descriptor: usize): bool {
  const end = wordAt(descriptor, loadPlain(descriptor + COUNT))
  closeDescriptor(descriptor)
  for (let word = descriptor + WORDS; word < end; word += WORD_SIZE) {
    if (loadPlain(<usize>loadPlain(word)) != loadPlain(word + EXPECTED)) return false
  }
  for (let word = descriptor + WORDS; word < end; word += WORD_SIZE) storePlain(<usize>loadPlain(word), loadPlain(word + NEXT))
  return true
}

/** Frees a descriptor whose references were put nowhere. */
export function closeDescriptor(descriptor: usize): void {
  if (isAlone) storePlain(descriptor + STATUS, withOutcome(loadPlain(descriptor + STATUS), FREE))
  else store(descriptor + STATUS, withOutcome(load(descriptor + STATUS), FREE))
}

/** The word at an address, with any descriptor reference there resolved first. */
@inline export function resolved(address: usize): u64 {
  const word = load(address)
  return isReference(word) ? resolvedFrom(address, word) : word
}

function resolvedFrom(address: usize, first: u64): u64 {
  let word = first
  while (isReference(word)) {
    resolve(address, word)
    word = load(address)
  }
  return word
}

function resolve(address: usize, reference: u64): void {
  const descriptor = descriptorOf(reference)
  let status = load(descriptor + STATUS)
  for (let tries = 0; status == undecided(reference); tries++) {
    if (load(address) != reference) return
    if (tries < PATIENCE) pause(tries)
    else swap(descriptor + STATUS, status, withOutcome(status, ABORTED))
    status = load(descriptor + STATUS)
  }
  for (let i: u64 = 0; i < MOST_WORDS; i++) {
    const word = wordAt(descriptor, i)
    if (<usize>loadPlain(word) != address) continue
    // If the descriptor was opened again meanwhile, the reference is gone and this swap fails.
    swap(address, reference, loadPlain(word + ((status & OUTCOME_MASK) == COMMITTED ? NEXT : EXPECTED)))
    return
  }
  // The descriptor does not list a word that holds its reference: the memory is damaged.
  if (load(address) == reference) unreachable()
}

@inline function referenceTo(descriptor: usize, status: u64): u64 {
  return REFERENCE | (<u64>(descriptor / DESCRIPTOR_SIZE) << TURN_BITS) | (turnOf(status) & TURN_MASK)
}

@inline function descriptorOf(reference: u64): usize {
  return <usize>((reference & ~REFERENCE) >> TURN_BITS) * DESCRIPTOR_SIZE
}

@inline function undecided(reference: u64): u64 {
  return ((reference & TURN_MASK) << OUTCOME_BITS) | UNDECIDED
}

@inline function turnOf(status: u64): u64 {
  return status >> OUTCOME_BITS
}

@inline function withOutcome(status: u64, outcome: u64): u64 {
  return (status & ~OUTCOME_MASK) | outcome
}

@inline function wordAt(descriptor: usize, i: u64): usize {
  return descriptor + WORDS + <usize>i * WORD_SIZE
}

/** The descriptor that records changes instead of making them; 0 while changes are made at once. */
export let staging: usize = 0

export function stageIn(descriptor: usize): void {
  staging = descriptor
}

/** Swaps two words together, or stages both. */
export function swapOrStageBoth(one: usize, oneSeen: u64, oneNext: u64, other: usize, otherSeen: u64, otherNext: u64): bool {
  if (staging == 0) return swapBoth(one, oneSeen, oneNext, other, otherSeen, otherNext)
  addWord(staging, one, oneSeen, oneNext)
  addWord(staging, other, otherSeen, otherNext)
  return true
}

/** Swaps two words together at once. */
export function swapBoth(one: usize, oneSeen: u64, oneNext: u64, other: usize, otherSeen: u64, otherNext: u64): bool {
  const descriptor = openDescriptor()
  if (descriptor == 0) return false
  addWord(descriptor, one, oneSeen, oneNext)
  addWord(descriptor, other, otherSeen, otherNext)
  if (commit(descriptor)) return true
  add(base + CAS_RETRIES, 1)
  return false
}
