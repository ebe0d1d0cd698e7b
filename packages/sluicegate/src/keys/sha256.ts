// SHA-256 and HMAC in plain JavaScript: the digests of WebCrypto are asynchronous, and a decision in memory is not.
//
// Source: FIPS 180-4, section 6.2; RFC 2104.

const BLOCK = 64

/** The first 32 bits of the fractional parts of the cube roots, and of the square roots, of the first primes. */
const [ROUNDS, START] = rootFractions()

const schedule = new Int32Array(64)

/** Text as bytes, injectively: like UTF-8, but for each UTF-16 unit, so that lone surrogates stay distinct. */
export function unitBytes(text: string): Uint8Array {
  let length = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    length += unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3
  }
  const bytes = new Uint8Array(length)
  let at = 0
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x80) bytes[at++] = unit
    else {
      if (unit < 0x800) bytes[at++] = 0xc0 | (unit >> 6)
      else {
        bytes[at++] = 0xe0 | (unit >> 12)
        bytes[at++] = 0x80 | ((unit >> 6) & 0x3f)
      }
      bytes[at++] = 0x80 | (unit & 0x3f)
    }
  }
  return bytes
}

export function sha256(bytes: Uint8Array): Uint8Array {
  return finished(START.slice(), bytes, 0)
}

/** HMAC-SHA-256 under one secret; the two blocks of the secret are computed once. */
export function hmacSha256(secret: Uint8Array): (bytes: Uint8Array) => Uint8Array {
  const key = secret.length > BLOCK ? sha256(secret) : secret
  const [inner, outer] = [0x36, 0x5c].map((pad) => {
    const state = START.slice()
    const block = new Uint8Array(BLOCK).fill(pad)
    for (const [i, byte] of key.entries()) block[i] = byte ^ pad
    compress(state, block, 0)
    return state
  }) as [Int32Array, Int32Array]
  return (bytes) => finished(outer.slice(), finished(inner.slice(), bytes, BLOCK), BLOCK)
}

/** The digest after `before` bytes in whole blocks, whose state is given, and `bytes`. */
function finished(state: Int32Array, bytes: Uint8Array, before: number): Uint8Array {
  const whole = bytes.length - (bytes.length % BLOCK)
  for (let at = 0; at < whole; at += BLOCK) compress(state, bytes, at)
  const tail = new Uint8Array(bytes.length - whole < BLOCK - 8 ? BLOCK : 2 * BLOCK)
  tail.set(bytes.subarray(whole))
  tail[bytes.length - whole] = 0x80
  const bits = (before + bytes.length) * 8
  write(tail, tail.length - 8, Math.floor(bits / 2 ** 32))
  write(tail, tail.length - 4, bits)
  for (let at = 0; at < tail.length; at += BLOCK) compress(state, tail, at)
  const digest = new Uint8Array(32)
  for (let i = 0; i < 8; i++) write(digest, 4 * i, state[i] as number)
  return digest
}

function write(bytes: Uint8Array, at: number, word: number): void {
  bytes[at] = word >>> 24
  bytes[at + 1] = word >>> 16
  bytes[at + 2] = word >>> 8
  bytes[at + 3] = word
}

function compress(state: Int32Array, bytes: Uint8Array, at: number): void {
  const w = schedule as unknown as number[]
  for (let i = 0; i < 16; i++) {
    const j = at + 4 * i
    w[i] = ((bytes[j] as number) << 24) | ((bytes[j + 1] as number) << 16) | ((bytes[j + 2] as number) << 8) | (bytes[j + 3] as number)
  }
  for (let i = 16; i < 64; i++) {
    const x = w[i - 15] as number
    const y = w[i - 2] as number
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
    w[i] = (s0 + s1 + (w[i - 16] as number) + (w[i - 7] as number)) | 0
  }
  let a = state[0] as number
  let b = state[1] as number
  let c = state[2] as number
  let d = state[3] as number
  let e = state[4] as number
  let f = state[5] as number
  let g = state[6] as number
  let h = state[7] as number
  for (let i = 0; i < 64; i++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUNDS[i] as number) + (w[i] as number)) | 0
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  state[0] = (state[0] as number) + a
  state[1] = (state[1] as number) + b
  state[2] = (state[2] as number) + c
  state[3] = (state[3] as number) + d
  state[4] = (state[4] as number) + e
  state[5] = (state[5] as number) + f
  state[6] = (state[6] as number) + g
  state[7] = (state[7] as number) + h
}

function rootFractions(): readonly [rounds: Int32Array, start: Int32Array] {
  const primes: number[] = []
  for (let n = 2; primes.length < 64; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n)
  const fraction = (root: number): number => Math.floor((root % 1) * 2 ** 32)
  return [
    Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime))),
    Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p))),
  ]
}
