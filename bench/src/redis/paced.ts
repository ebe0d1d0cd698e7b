import { sink } from '../walk.js'
import type { FleetContender } from './fleet-contender.js'
import { type Stint, Tally } from './stint.js'

/** The most unanswered calls: a contender that cannot keep up would have to be waited for in the end. */
const MOST_OPEN = 1_000

/**
 * `perSecond` questions a second for `ms`, the callers taking turns, whatever becomes of the ones before. How long a decision takes counts from
 * when it was due: a stall weighs on all who came during it. A contender that falls behind is asked later than that, and fewer times in all.
 *
 * @param keyOf for each caller the number of its key.
 */
export function paced(
  { take, passed }: FleetContender,
  keys: readonly string[],
  keyOf: readonly number[],
  ms: number,
  perSecond: number,
): Promise<Stint> {
  return new Promise((resolve, reject) => {
    const tally = new Tally(keys.length)
    const questions = Math.floor((perSecond * ms) / 1000)
    const startMs = performance.now()
    let asked = 0
    let open = 0
    let isOver = false

    const answered = (key: number, isAdmitted: boolean, dueMs: number): void => {
      tally.count(key, isAdmitted, performance.now() - dueMs)
      if (--open === 0 && isOver) resolve(tally.stint())
    }
    const ask = (dueMs: number): void => {
      const key = keyOf[asked++ % keyOf.length] as number
      open++
      const answer = take(keys[key] as string)
      sink.last = answer
      if (!(answer instanceof Promise)) {
        answered(key, passed(answer), dueMs)
        return
      }
      answer.then(
        (later) => answered(key, passed(later), dueMs),
        (denial) => (denial instanceof Error ? reject(denial) : answered(key, false, dueMs)),
      )
    }
    const turn = (): void => {
      const nowMs = performance.now()
      while (asked < questions && open < MOST_OPEN) {
        const dueMs = startMs + (asked / perSecond) * 1000
        if (dueMs > nowMs) break
        ask(dueMs)
      }
      isOver = asked === questions || nowMs >= startMs + ms
      if (!isOver) setImmediate(turn)
      else if (open === 0) resolve(tally.stint())
    }
    turn()
  })
}
