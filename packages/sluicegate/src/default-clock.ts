import { type Clock, preciseClock, wallClock } from './clock.js'
import type { Policy } from './policy/policy.js'

/**
 * The clock of a limiter that was given none. Windows of the calendar go by the wall clock, also after it was stepped; a time that passes evenly
 * is better for all others, and for several policies together unless all of them are of the calendar.
 */
export function defaultClock(policy: Policy): Clock {
  return isOfCalendar(policy) ? wallClock() : preciseClock()
}

function isOfCalendar(policy: Policy): boolean {
  return policy.policies?.every(isOfCalendar) ?? policy.calendar !== undefined
}
