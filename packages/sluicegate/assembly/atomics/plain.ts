// Words that nobody else looks at until a swap of another word has told of them.

@inline export function loadPlain(address: usize): u64 {
  return load<u64>(address)
}

@inline export function storePlain(address: usize, word: u64): void {
  store<u64>(address, word)
}
