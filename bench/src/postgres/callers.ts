import type { Contender } from './contenders.js'

/** What callers did together. */
export interface Calls {
  readonly decisions: number
  readonly admitted: number
  readonly ms: number
}

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
  const caller = async (): Promise<void> => {
    let inARow = 0
    while (performance.now() - fromMs < ms && decisions < most) {
      const answer = contender.take(keyOf())
      let allowed: boolean
      if (typeof answer === 'boolean') {
        allowed = answer
        if (++inARow % AT_ONCE === 0) await new Promise((resolve) => setImmediate(resolve))
      } else {
        allowed = await answer
      }
      decisions++
      if (allowed) admitted++
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return { decisions, admitted, ms: performance.now() - fromMs }
}
