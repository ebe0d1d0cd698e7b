import { onceInProcess } from '../once-in-process.js'

/** Versions made at once: a call of the generator costs more than a number. */
const POOL = 64
const pool = /* @__PURE__ */ onceInProcess('random versions', () => ({ numbers: new BigUint64Array(POOL), used: POOL }))

/**
 * A random positive number of 63 bits, as text: a version never comes again for a key, also after its row was removed and made again, or after
 * a crash reset what the server counts.
 */
export function newVersion(): string {
  if (pool.used === POOL) {
    globalThis.crypto.getRandomValues(pool.numbers)
    pool.used = 0
  }
  return ((pool.numbers[pool.used++] as bigint) >> 1n).toString()
}
