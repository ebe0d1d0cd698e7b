import { load, store, swap } from "./atomics"
import { EXPLORED } from "./build-flags"
import { pause } from "./host"
import { DESCRIPTORS, DESCRIPTOR_COUNT, DESCRIPTOR_SIZE, MORE_DESCRIPTORS } from "./memory-map"
import { read, write } from "./plain"
import { base } from "./section"
import { TICKET, isTicket } from "./words"

// Several words that change together or not at all.
//
// Who wants that opens a descriptor and writes down for each word where it is, what it is and what it shall be. He swaps his
// ticket into the words, one after another; then the descriptor's status from undecided to done, which is the moment at which
// they all change; then each ticket for its new word. Whoever meets a ticket does not wait for him: of a decided descriptor he
// finishes the word himself, an undecided one he gives a moment and then calls off. So a thread that dies here leaves nothing
// stuck, and one that is called off starts again.
//
// Nobody but its owner puts a ticket anywhere, each once, and none after it is done; and he opens the descriptor again only
// when none of its tickets stands anywhere. So a ticket that stands tells the truth about its word, and comes back never: its turn
// grows. Its words are written before its ticket is anywhere and read after one was found, so that plain accesses do: what is read while
// it is opened again goes nowhere. A thread that dies within leaves its descriptor unused for good; when none is free, the
// memory grows by a page of them.
//
// Reference: T. Harris, K. Fraser, I. Pratt, "A practical multi-word compare-and-swap operation", 2002. There others help to put
// the tickets in, which takes a second kind of descriptor and another swap a word.

const STATUS: usize = 0
const COUNT: usize = 8
const WORDS: usize = 16
const WORD_SIZE: usize = 24
const EXPECTED: usize = 8
const NEXT: usize = 16
const MOST_WORDS: u64 = 20

const OUTCOME_BITS: u64 = 2
const OUTCOME_MASK: u64 = 3
const FREE: u64 = 0
const UNDECIDED: u64 = 1
const DONE: u64 = 2
const CALLED_OFF: u64 = 3

const TURN_BITS: u64 = 39
const TURN_MASK: u64 = (1 << 39) - 1

/** Looks at an undecided descriptor before it is called off. */
const PATIENCE: i32 = EXPLORED ? 1 : 16

const PAGE_SIZE: usize = 65536

/** The descriptor used last: the likeliest to be free. */
let likely: i32 = 0

/** A descriptor of this thread's own, or 0 when all are taken and the memory does not grow. */
export function open(): usize {
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
  if (!swap(descriptor + STATUS, status, ((turnOf(status) + 1) << OUTCOME_BITS) | UNDECIDED)) return false
  write(descriptor + COUNT, 0)
  return true
}

/** One from the pages that were added. In the place of a page's first is where the next page lies. */
function openAnother(): usize {
  let link = base + MORE_DESCRIPTORS
  while (true) {
    if (load(link) == 0) {
      const page = memory.grow(1)
      if (page < 0) return 0
      // Lost, the page is wasted.
      swap(link, 0, <u64>page * PAGE_SIZE)
    }
    const page = <usize>load(link)
    for (let descriptor = page + DESCRIPTOR_SIZE; descriptor < page + PAGE_SIZE; descriptor += DESCRIPTOR_SIZE) {
      if (isOpened(descriptor)) return descriptor
    }
    link = page
  }
}

/** One more word to change. */
export function add(descriptor: usize, address: usize, expected: u64, next: u64): void {
  const count = read(descriptor + COUNT)
  if (count == MOST_WORDS) unreachable()
  const word = wordAt(descriptor, count)
  write(word, <u64>address)
  write(word + EXPECTED, expected)
  write(word + NEXT, next)
  write(descriptor + COUNT, count + 1)
}

/** Changes all of them, or none; then the descriptor is free. */
export function commit(descriptor: usize): bool {
  const status = load(descriptor + STATUS)
  const ticket = ticketOf(descriptor, status)
  const count = read(descriptor + COUNT)
  let placed: u64 = 0
  while (placed < count && swap(<usize>read(wordAt(descriptor, placed)), read(wordAt(descriptor, placed) + EXPECTED), ticket)) placed++
  const done = placed == count && swap(descriptor + STATUS, status, withOutcome(status, DONE))
  // Before the tickets go: whoever still finds one must find it decided.
  if (!done) store(descriptor + STATUS, withOutcome(status, CALLED_OFF))
  for (let i: u64 = 0; i < placed; i++) {
    const word = wordAt(descriptor, i)
    swap(<usize>read(word), ticket, read(word + (done ? NEXT : EXPECTED)))
  }
  store(descriptor + STATUS, withOutcome(status, FREE))
  return done
}

/** Nothing was put anywhere: the descriptor is free. */
export function close(descriptor: usize): void {
  store(descriptor + STATUS, withOutcome(load(descriptor + STATUS), FREE))
}

/** The word at an address, with any ticket there settled first. */
@inline export function settled(address: usize): u64 {
  const word = load(address)
  return isTicket(word) ? settledFrom(address, word) : word
}

function settledFrom(address: usize, first: u64): u64 {
  let word = first
  while (isTicket(word)) {
    settle(address, word)
    word = load(address)
  }
  return word
}

function settle(address: usize, ticket: u64): void {
  const descriptor = descriptorOf(ticket)
  let status = load(descriptor + STATUS)
  for (let tries = 0; status == undecided(ticket); tries++) {
    if (load(address) != ticket) return
    if (tries < PATIENCE) pause(tries)
    else swap(descriptor + STATUS, status, withOutcome(status, CALLED_OFF))
    status = load(descriptor + STATUS)
  }
  for (let i: u64 = 0; i < MOST_WORDS; i++) {
    const word = wordAt(descriptor, i)
    if (<usize>read(word) != address) continue
    // Should the descriptor have been opened again meanwhile, the ticket is gone, and this swap fails.
    swap(address, ticket, read(word + ((status & OUTCOME_MASK) == DONE ? NEXT : EXPECTED)))
    return
  }
  // Its descriptor knows nothing of a ticket that stands: the memory is damaged.
  if (load(address) == ticket) unreachable()
}

@inline function ticketOf(descriptor: usize, status: u64): u64 {
  return TICKET | (<u64>(descriptor / DESCRIPTOR_SIZE) << TURN_BITS) | (turnOf(status) & TURN_MASK)
}

@inline function descriptorOf(ticket: u64): usize {
  return <usize>((ticket & ~TICKET) >> TURN_BITS) * DESCRIPTOR_SIZE
}

@inline function undecided(ticket: u64): u64 {
  return ((ticket & TURN_MASK) << OUTCOME_BITS) | UNDECIDED
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
