import { sink } from '../key-row.js'
import type { FleetContender } from './contenders.js'
import { type Stint, Tally } from './stint.js'

/** Decisions made in the process, by all callers together, before the event loop looks for replies again. */
const DECISIONS_A_TURN = 256
/** Of a contender that decides in nanoseconds one decision in this many is timed: two readings of the clock would cost as much as it does. */
const TIMED_IN_PROCESS = 31

/**
 * As many callers as there are `keyOf`, each with one question at a time, and the next as soon as it has its answer, for `ms`. Stalls hide
 * here, as no caller asks during one: what a decision takes from when it was due is measured by `paced`.
 *
 * @param keyOf for each caller the number of its key.
 */
export function closedLoop(contender: FleetContender, keys: readonly string[], keyOf: readonly number[], ms: number): Promise<Stint> {
  const { take, passed, awaited } = contender
  const slice = Math.max(1, Math.floor(DECISIONS_A_TURN / keyOf.length))
  const stride = awaited ? 1 : TIMED_IN_PROCESS
  return new Promise((resolve, reject) => {
    const tally = new Tally(keys.length)
    let callers = keyOf.length
    // Those who go on in the next turn; each once, and in a turn each is read before it is written again.
    const ready = new Int32Array(keyOf.length)
    let readyCount = 0
    let untilTimed = stride
    let isTurnDue = false
    const untilMs = performance.now() + ms
    let isOver = false

    const leave = (): void => {
      if (--callers === 0) resolve(tally.stint())
    }
    const answered = (caller: number, key: number, isAdmitted: boolean, fromMs: number | undefined): void => {
      const nowMs = performance.now()
      isOver = nowMs >= untilMs
      tally.count(key, isAdmitted, fromMs === undefined ? undefined : nowMs - fromMs)
      go(caller)
    }
    const later = (answer: Promise<unknown>, caller: number, key: number, fromMs: number | undefined): void => {
      answer.then(
        (decision) => answered(caller, key, passed(decision), fromMs),
        // A denial may come as a rejection; an error is none.
        (denial) => (denial instanceof Error ? reject(denial) : answered(caller, key, false, fromMs)),
      )
    }
    const go = (caller: number): void => {
      if (isOver) {
        leave()
        return
      }
      const key = keyOf[caller] as number
      const name = keys[key] as string
      for (let left = slice; left > 0; left--) {
        let fromMs: number | undefined
        if (--untilTimed === 0) {
          untilTimed = stride
          fromMs = performance.now()
        }
        const answer = take(name)
        sink.last = answer
        if (answer instanceof Promise) {
          later(answer, caller, key, fromMs)
          return
        }
        tally.count(key, passed(answer), fromMs === undefined ? undefined : performance.now() - fromMs)
      }
      ready[readyCount++] = caller
      if (isTurnDue) return
      isTurnDue = true
      setImmediate(turn)
    }
    const turn = (): void => {
      isTurnDue = false
      isOver = performance.now() >= untilMs
      const going = readyCount
      readyCount = 0
      for (let i = 0; i < going; i++) go(ready[i] as number)
    }
    for (const caller of keyOf.keys()) go(caller)
  })
}

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
