// A key with ten denials within a minute is banned for 15 minutes, and twice as long for each further ban.
import { createLimiter, fixedWindow, manualClock } from 'sluicegate'

const clock = manualClock(Date.parse('2026-05-01')) // leave it out to use the real time
const limiter = createLimiter(fixedWindow({ limit: 5, window: '10s', name: 'login' }), {
  clock,
  banAfter: {
    denials: 10,
    within: '1m',
    for: '15m',
    factor: 2,
    onBan: ({ key, forMs, bans }) => console.log(`${key} is banned for ${forMs / 60_000} min, ban ${bans}`),
  },
})

for (let i = 0; i < 20; i++) limiter.take('guesser')
const { allowed, retryAfterMs } = limiter.take('guesser')
console.log(allowed, retryAfterMs, limiter.take('bob').allowed)

clock.advance(retryAfterMs)
console.log(limiter.take('guesser').allowed)
for (let i = 0; i < 20; i++) limiter.take('guesser')
limiter.reset('guesser') // lifts the ban
console.log(limiter.take('guesser').allowed)

// Prints:
//   guesser is banned for 15 min, ban 1
//   false 900000 true
//   true
//   guesser is banned for 30 min, ban 2
//   true
