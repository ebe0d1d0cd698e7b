import type { Policy } from './policy/policy.js'
import { type Clock, preciseClock, wallClock } from './time/clock.js'
import { DAY_MS } from './time/duration.js'

/**
 * The clock of a limiter that was given none. Windows of the calendar, and fixed windows of a day or longer, go by the wall clock, also after
 * it was stepped. A time that passes evenly is better for all others, and for several policies together unless all of them are such windows:
 * after a step back a shorter window would be closed for many times its length.
 */
export function defaultClock(policy: Policy): Clock {
  return isOfDays(policy) ? wallClock() : preciseClock()
}

function isOfDays({ policies, algorithm, calendar, windowMs }: Policy): boolean {
  return policies?.every(isOfDays) ?? (calendar !== undefined || (algorithm === 'fixed-window' && windowMs >= DAY_MS))
}
