// The two words of an entry.
//
//   identity    fingerprint 48 | 0 0 | generation 14             which key lives here
//   state       0 | 1 | epoch 3 | held | owner 2 | value 56      of the key that the identity names
//   mark        1 | 0 | fingerprint 48 | generation 14           a thread is claiming the entry
//   reference   1 | 1 | descriptor 23 | turn 39                  one of several words that change together, see kcas.ts
//
// An entry of zeros was never used. The generation grows by one with every claim of the entry, also when a mark is taken over: no
// two marks of an entry are alike, and an identity is never written twice, until 2^14 claims have gone by. `owner` is its low
// part: the state words of four owners in a row differ, whatever their values. `held`: work is open, and a ring says what it holds
// (rings.ts).

export const NEVER_USED: u64 = 0
export const NO_KEY: u64 = 0

const MARK: u64 = 1 << 63
const USED: u64 = 1 << 62
/** The least descriptor reference. */
export const REFERENCE: u64 = MARK | USED
const EPOCH_SHIFT: u64 = 59
const OWNER_SHIFT: u64 = 56
const EPOCH_MASK: u64 = 7
const OWNER_MASK: u64 = 3
/** Not of permits. */
const HELD: u64 = 1 << 58
const HEAD_SHIFT: u64 = 58
const VALUE_MASK: u64 = (1 << 56) - 1
const GENERATION_MASK: u64 = 0x3fff
const FINGERPRINT_MASK: u64 = (1 << 48) - 1

@inline export function fingerprintOf(identity: u64): u64 {
  return identity >> 16
}

/** A mark, or a descriptor reference. */
@inline export function isMark(state: u64): bool {
  return (state & MARK) != 0
}

@inline export function isReference(word: u64): bool {
  return word >= REFERENCE
}

/** The claim of `fingerprint` on an entry that holds the state `seen` under `identity`. */
@inline export function claimMark(fingerprint: u64, identity: u64, seen: u64): u64 {
  const generation = isMark(seen) ? seen + 1 : identity
  return MARK | (fingerprint << 14) | (generation & GENERATION_MASK)
}

/** The identity that the holder of `mark` writes. */
@inline export function identityAfter(mark: u64, fingerprint: u64): u64 {
  return (fingerprint << 16) | ((mark + 1) & GENERATION_MASK)
}

/** The identity of the first key of an entry, whose state words have this owner. */
@inline export function firstIdentity(fingerprint: u64, owner: u64): u64 {
  return (fingerprint << 16) | owner
}

@inline export function markFingerprint(state: u64): u64 {
  return (state >> 14) & FINGERPRINT_MASK
}

@inline export function stateWord(epoch: u64, identity: u64, value: u64): u64 {
  return USED | ((epoch & EPOCH_MASK) << EPOCH_SHIFT) | ((identity & OWNER_MASK) << OWNER_SHIFT) | value
}

/** The same owner's word with another value, in another epoch. */
@inline export function withValue(state: u64, epoch: u64, value: u64): u64 {
  return USED | ((epoch & EPOCH_MASK) << EPOCH_SHIFT) | (state & (HELD | (OWNER_MASK << OWNER_SHIFT))) | value
}

/** Whether the key of a state word has a ring. */
@inline export function isHeld(state: u64): bool {
  return (state & HELD) != 0
}

@inline export function withRing(state: u64): u64 {
  return state | HELD
}

@inline export function withoutRing(state: u64): u64 {
  return state & ~HELD
}

/** Two bits that differ between four owners in a row. */
@inline export function ownerOf(state: u64): u64 {
  return (state >> OWNER_SHIFT) & OWNER_MASK
}

@inline export function valueOf(state: u64): u64 {
  return state & VALUE_MASK
}

/** The bits above owner and value: they tell a state word of `epoch` without a ring from all other words. */
@inline export function headOf(state: u64): u64 {
  return state >> HEAD_SHIFT
}

@inline export function stateHead(epoch: u64): u64 {
  return headOf(stateWord(epoch, 0, 0))
}

/** The number of policies since the word was written, 0 to 7; migration keeps it below 7. */
@inline export function lagOf(state: u64, epoch: u64): u64 {
  return (epoch - (state >> EPOCH_SHIFT)) & EPOCH_MASK
}

// A key's fingerprint is even; the key's ban has its own entry under the odd fingerprint.

@inline export function banFingerprint(fingerprint: u64): u64 {
  return fingerprint | 1
}

@inline export function isBan(fingerprint: u64): bool {
  return (fingerprint & 1) != 0
}
