// Words that no other thread reads until a swap of another word publishes them.

@inline export function loadPlain(address: usize): u64 {
  return load<u64>(address)
}

@inline export function storePlain(address: usize, word: u64): void {
  store<u64>(address, word)
}
