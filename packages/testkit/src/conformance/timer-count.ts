import type { ManualClock } from 'sluicegate'

/** How many timers are set on a clock now, were at once at most, and were set in all. */
export interface TimerCount {
  set: number
  most: number
  inAll: number
}

/** Counts the timers of a clock from now on. */
export function countTimers(clock: ManualClock): TimerCount {
  const timers = { set: 0, most: 0, inAll: 0 }
  const { after } = clock
  clock.after = (ms, fn) => {
    let isSet = true
    const end = (): void => {
      if (isSet) timers.set--
      isSet = false
    }
    timers.set++
    timers.inAll++
    timers.most = Math.max(timers.most, timers.set)
    const cancel = after(ms, () => {
      end()
      fn()
    })
    return () => {
      end()
      cancel()
    }
  }
  return timers
}
