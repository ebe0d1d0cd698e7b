import { randomFillSync } from 'node:crypto'

/** The arrays of a {@link KeyTable}. Threads that have them share them. */
export interface KeyTableArrays {
  readonly keys: number
  readonly longest: number
  readonly texts: Uint8Array
  readonly ends: Uint32Array
  readonly hashes: Uint32Array
  readonly numbers: Uint16Array
  readonly slots: Uint32Array
  readonly factors: Uint32Array
}

/** Keys and bytes that there is room for at first. */
const LEAST_KEYS = 16
const LEAST_BYTES = 256
/** A text with such signs has two bytes for each, all others one. */
const WIDE = /[\u0100-\uffff]/
/** Units of a key that are hashed by factors of their own: no key of a data file has more. */
const UNITS = 1_024
/** Random ones of this thread: who chooses keys does not know which of them meet. */
const FACTORS = randomFillSync(new Uint32Array(new SharedArrayBuffer(2 * (UNITS + 1) * Uint32Array.BYTES_PER_ELEMENT)))

/**
 * Keys, each with a number below 32,768, in a few arrays outside of the heap: a map with a million texts is looked through at each full collection,
 * in steps of up to 40 ms, and is copied on its way to another thread.
 */
export class KeyTable {
  #keys = 0
  #longest = 0
  #texts: Buffer = Buffer.alloc(0)
  /** By the order in which the keys came: where the text ends, its hash, its number with the lowest bit for a wide text. */
  #ends: Uint32Array = new Uint32Array()
  #hashes: Uint32Array = new Uint32Array()
  #numbers: Uint16Array = new Uint16Array()
  /** Open addressing, a power of two and at least twice the keys: 0, or 1 and the place of a key in that order. */
  #slots: Uint32Array = new Uint32Array()
  readonly #factors: Uint32Array = FACTORS

  /** @param arrays of another one, to be read on; it is not changed any more. */
  constructor(arrays?: KeyTableArrays) {
    if (arrays === undefined) return
    this.#keys = arrays.keys
    this.#longest = arrays.longest
    this.#texts = bufferOver(arrays.texts)
    this.#ends = arrays.ends
    this.#hashes = arrays.hashes
    this.#numbers = arrays.numbers
    this.#slots = arrays.slots
    this.#factors = arrays.factors
  }

  get arrays(): KeyTableArrays {
    return {
      keys: this.#keys,
      longest: this.#longest,
      texts: this.#texts,
      ends: this.#ends,
      hashes: this.#hashes,
      numbers: this.#numbers,
      slots: this.#slots,
      factors: this.#factors,
    }
  }

  get(key: string): number | undefined {
    if (this.#keys === 0 || key.length > this.#longest) return undefined
    const place = this.#slots[this.#slotOf(key, hashOf(key, this.#factors))] as number
    return place === 0 ? undefined : (this.#numbers[place - 1] as number) >> 1
  }

  /** Returns whether the key is new; one that is there stays as it is. */
  add(key: string, number: number): boolean {
    const isWide = WIDE.test(key)
    this.#makeRoom(isWide ? 2 * key.length : key.length)
    const hash = hashOf(key, this.#factors)
    const slot = this.#slotOf(key, hash)
    if (this.#slots[slot] !== 0) return false
    const nth = this.#keys++
    const start = this.#startOf(nth)
    this.#ends[nth] = start + this.#texts.write(key, start, isWide ? 'utf16le' : 'latin1')
    this.#hashes[nth] = hash
    this.#numbers[nth] = 2 * number + Number(isWide)
    this.#slots[slot] = nth + 1
    this.#longest = Math.max(this.#longest, key.length)
    return true
  }

  *keys(): Generator<string> {
    for (let nth = 0; nth < this.#keys; nth++)
      yield this.#texts.toString(this.#isWide(nth) ? 'utf16le' : 'latin1', this.#startOf(nth), this.#ends[nth])
  }

  /** That of the key, or the free one where it would be. */
  #slotOf(key: string, hash: number): number {
    const mask = this.#slots.length - 1
    let slot = hash & mask
    for (let place = this.#slots[slot] as number; place !== 0 && !this.#isAt(place - 1, key, hash); place = this.#slots[slot] as number)
      slot = (slot + 1) & mask
    return slot
  }

  #isAt(nth: number, key: string, hash: number): boolean {
    if (this.#hashes[nth] !== hash) return false
    const [start, end] = [this.#startOf(nth), this.#ends[nth] as number]
    const step = this.#isWide(nth) ? 2 : 1
    if (end - start !== step * key.length) return false
    for (let i = 0, at = start; i < key.length; i++, at += step) {
      const unit = step === 1 ? this.#texts[at] : this.#texts.readUInt16LE(at)
      if (unit !== key.charCodeAt(i)) return false
    }
    return true
  }

  #startOf(nth: number): number {
    return nth === 0 ? 0 : (this.#ends[nth - 1] as number)
  }

  #isWide(nth: number): boolean {
    return ((this.#numbers[nth] as number) & 1) === 1
  }

  /** For one more key with a text of so many bytes. */
  #makeRoom(bytes: number): void {
    const end = this.#startOf(this.#keys) + bytes
    if (end > this.#texts.length) this.#texts = bufferOver(grown<Uint8Array>(this.#texts, Uint8Array, Math.max(LEAST_BYTES, 2 * end)))
    if (this.#keys < this.#ends.length) return
    const room = Math.max(LEAST_KEYS, 2 * this.#keys)
    this.#ends = grown(this.#ends, Uint32Array, room)
    this.#hashes = grown(this.#hashes, Uint32Array, room)
    this.#numbers = grown(this.#numbers, Uint16Array, room)
    this.#slots = grown(new Uint32Array(), Uint32Array, 2 * room)
    for (let nth = 0; nth < this.#keys; nth++) {
      const mask = this.#slots.length - 1
      let slot = (this.#hashes[nth] as number) & mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask
      this.#slots[slot] = nth + 1
    }
  }
}

/** A copy with room for so many, which threads can share. */
function grown<Numbers extends Uint8Array | Uint16Array | Uint32Array>(
  numbers: Numbers,
  type: { new (buffer: SharedArrayBuffer): Numbers; readonly BYTES_PER_ELEMENT: number },
  length: number,
): Numbers {
  const larger = new type(new SharedArrayBuffer(length * type.BYTES_PER_ELEMENT))
  larger.set(numbers)
  return larger
}

/** The same bytes: what comes from another thread is no buffer any more. */
function bufferOver({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, length)
}

/**
 * Twice the highest bits of a sum of the units, each by its factor: as seldom equal for two keys as random numbers are, whoever chose them (Dietzfelbinger,
 * "Universal hashing and k-wise independent random variables via integer arithmetic without primes"). Then the end of Murmur3, so that keys in a row spread.
 */
function hashOf(key: string, factors: Uint32Array): number {
  let first = factors[0] as number
  let second = factors[1] as number
  for (let i = 0; i < key.length; i++) {
    const at = 2 * (i % UNITS) + 2
    // A zero at the end counts, too.
    const unit = key.charCodeAt(i) + 1
    first = (first + Math.imul(factors[at] as number, unit)) | 0
    second = (second + Math.imul(factors[at + 1] as number, unit)) | 0
  }
  let hash = (first & 0xffff0000) | (second >>> 16)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
