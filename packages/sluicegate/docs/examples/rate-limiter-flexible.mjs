// Migrated from rate-limiter-flexible: 3 wrong passwords per hour, then locked out for a day.
import { manualClock } from 'sluicegate'
import { RateLimiterMemory } from 'sluicegate/rate-limiter-flexible'

// So that the example does not take a day; leave it out to use the real time.
const clock = manualClock(Date.parse('2026-03-10T09:58:00Z'))
const wrong = new RateLimiterMemory({ points: 3, duration: 3600, blockDuration: 86_400, keyPrefix: 'login', clock })

const lockedOut = ({ msBeforeNext }) => `locked out for ${msBeforeNext / 3_600_000} hours`

async function login(user, password) {
  const known = await wrong.get(user)
  if (known !== null && known.consumedPoints > wrong.points) return lockedOut(known)
  if (password === 'right') {
    await wrong.delete(user)
    return 'welcome'
  }
  try {
    const { remainingPoints } = await wrong.consume(user)
    return `wrong, ${remainingPoints} left`
  } catch (denied) {
    if (denied instanceof Error) throw denied
    return lockedOut(denied)
  }
}

for (const password of ['a', 'b', 'right', 'c', 'd', 'e', 'f', 'right']) console.log(await login('ada', password))

// The window has ended, the block has not.
clock.advance(18 * 3_600_000)
console.log(await login('ada', 'right'))
clock.advance(6 * 3_600_000)
console.log(await login('ada', 'right'))

// Concurrent attempts: the value of get() is outdated by then, and consume() decides.
console.log(await Promise.all(['a', 'b', 'c', 'd', 'e'].map((password) => login('bob', password))))

// Prints:
//   wrong, 2 left
//   wrong, 1 left
//   welcome
//   wrong, 2 left
//   wrong, 1 left
//   wrong, 0 left
//   locked out for 24 hours
//   locked out for 24 hours
//   locked out for 6 hours
//   welcome
//   [
//     'wrong, 2 left',
//     'wrong, 1 left',
//     'wrong, 0 left',
//     'locked out for 24 hours',
//     'locked out for 24 hours'
//   ]
