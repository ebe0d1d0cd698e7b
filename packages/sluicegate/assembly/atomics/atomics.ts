import { EXPLORED } from "../build-flags"
import { yieldPoint } from "../host"

// Atomic access to the words by which threads decide. Exceptions: policy records, which do not change while they can be read
// (policy-record.ts, publish.ts); what a later swap publishes (plain.ts); and counts that decide nothing (release-signal.ts).
//
// WebAssembly atomics are sequentially consistent: all threads see one order of all of them. The arguments in search.ts and
// claim.ts rely on that and on nothing weaker.

@inline export function load(address: usize): u64 {
  if (EXPLORED) yieldPoint()
  return atomic.load<u64>(address)
}

@inline export function store(address: usize, word: u64): void {
  if (EXPLORED) yieldPoint()
  atomic.store<u64>(address, word)
}

/** Compare-and-swap: true if the word was `expected` and is now `next`. */
@inline export function swap(address: usize, expected: u64, next: u64): bool {
  if (EXPLORED) yieldPoint()
  return atomic.cmpxchg<u64>(address, expected, next) == expected
}

/** Adds, and returns the word as it was before. */
@inline export function add(address: usize, amount: u64): u64 {
  if (EXPLORED) yieldPoint()
  return atomic.add<u64>(address, amount)
}

/** Raises the word to at least `floor`, as signed numbers. */
export function raise(address: usize, floor: i64): void {
  let seen = load(address)
  while (<i64>seen < floor) {
    if (swap(address, seen, <u64>floor)) return
    seen = load(address)
  }
}
