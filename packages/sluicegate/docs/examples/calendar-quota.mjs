// A quota per month, by the calendar of a time zone. A manual clock shows the end of a month.
import { createLimiter, fixedWindow, manualClock } from 'sluicegate'

const clock = manualClock(Date.parse('2026-02-28T22:59:00Z')) // one minute before midnight in Rome
const quota = createLimiter(fixedWindow({ limit: 10_000, window: 'month', timeZone: 'Europe/Rome' }), { clock })

quota.take('acme', 10_000)
const { allowed, resetAfterMs } = quota.take('acme')
console.log(allowed, `the quota is new in ${resetAfterMs / 1000} s`)

clock.advance(60_000)
console.log(quota.take('acme').remaining)
const days = quota.peek('acme').resetAfterMs / 86_400_000
console.log(`March has ${days.toFixed(2)} days there: clocks go forward`)

// Prints:
//   false the quota is new in 60 s
//   9999
//   March has 30.96 days there: clocks go forward
