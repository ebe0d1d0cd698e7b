import type { Contender } from './contenders.js'

/** What callers did together. */
export interface Calls {
  readonly decisions: number
  readonly admitted: number
  readonly ms: number
  /** Of 100 decisions 99 took no longer. */
  readonly p99Ms: number
}

/** Decisions of which it is remembered how long they took, at most. */
const MOST_REMEMBERED = 100_000

/** Answers without a promise, before the event loop looks for replies again. */
const AT_ONCE = 64

/** Callers with one question at a time each, until the time or the number of decisions is over. */
export async function callFor(
  contender: Contender,
  callers: number,
  keyOf: () => string,
  ms: number,
  most = Number.POSITIVE_INFINITY,
): Promise<Calls> {
  const fromMs = performance.now()
  let decisions = 0
  let admitted = 0
  let atOnce = 0
  const tookMs: number[] = []
  const caller = async (): Promise<void> => {
    let inARow = 0
    while (performance.now() - fromMs < ms && decisions < most) {
      const answer = contender.take(keyOf())
      let allowed: boolean
      if (typeof answer === 'boolean') {
        allowed = answer
        atOnce++
        if (++inARow % AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve))
      } else {
        const sentMs = performance.now()
        allowed = await answer
        if (tookMs.length < MOST_REMEMBERED) tookMs.push(performance.now() - sentMs)
      }
      decisions++
      if (allowed) admitted++
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  const passedMs = performance.now() - fromMs
  tookMs.sort((a, b) => a - b)
  const place = Math.floor((tookMs.length + atOnce) * 0.99) - atOnce
  return { decisions, admitted, ms: passedMs, p99Ms: tookMs[Math.min(place, tookMs.length - 1)] ?? 0 }
}
