const POOL = 64
const pool = /* @__PURE__ */ new BigUint64Array(POOL)
let used = POOL

/**
 * A random positive number of 63 bits, as text: a version never comes again for a key, also after its row was removed and made anew, or after
 * a crash reset what the server counts.
 */
export function newVersion(): string {
  if (used === POOL) {
    globalThis.crypto.getRandomValues(pool)
    used = 0
  }
  return ((pool[used++] as bigint) >> 1n).toString()
}
