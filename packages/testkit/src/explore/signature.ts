import type { ExploredThread } from './explored-thread.js'

const MOST_CALLS = 64
const numbers = new Float64Array(1 + MOST_CALLS * 5)
const halves = new Int32Array(numbers.buffer)

/**
 * 53 bits of everything that judges a schedule: answers, their reasons, which call had ended before which began. Schedules with
 * the same outcome are judged once; among a million outcomes two share a number by chance once in 10^4 runs.
 */
export function signatureOf(threads: readonly ExploredThread[], evictions: number): number {
  let used = 0
  numbers[used++] = evictions
  for (let a = 0; a < threads.length; a++) {
    const { values, mores, untils, whys, forgotten, began, ended } = threads[a] as ExploredThread
    for (let i = 0; i < values.length; i++) {
      const endedAt = ended[i] as number
      numbers[used++] = endedAt === Number.POSITIVE_INFINITY ? -0.5 : (values[i] as number)
      numbers[used++] =
        ((whys[i] as number) * 4_294_967_296 + (began[i] === Number.POSITIVE_INFINITY ? 1 : 0)) *
        (endedAt === Number.POSITIVE_INFINITY ? 0.5 : 1)
      numbers[used++] = endedAt === Number.POSITIVE_INFINITY ? (untils[i] as number) : (mores[i] as number)
      numbers[used++] = whys[i] === 0 ? -1 : (forgotten[i] as number)
      numbers[used++] = precededBy(threads, a, began[i] as number)
    }
  }
  let one = 0x811c9dc5
  let two = 0x9e3779b9
  for (let i = 0; i < used * 2; i++) {
    const half = halves[i] as number
    one = Math.imul(one ^ half, 0x01000193)
    one ^= one >>> 15
    two = Math.imul(two ^ half, 0x85ebca6b)
    two ^= two >>> 13
  }
  return (one >>> 0) * 2_097_152 + (two >>> 11)
}

/** A bit for each call of another thread that had ended before. */
function precededBy(threads: readonly ExploredThread[], self: number, began: number): number {
  let bits = 0
  for (let b = 0; b < threads.length; b++) {
    const { ended } = threads[b] as ExploredThread
    for (let i = 0; i < ended.length; i++) bits = bits * 2 + (b !== self && (ended[i] as number) < began ? 1 : 0)
  }
  return bits
}
