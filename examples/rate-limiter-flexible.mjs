// Moved over from rate-limiter-flexible: 3 wrong passwords an hour, then locked out for a day.
import { RateLimiterMemory } from 'sluicegate/rate-limiter-flexible'

const wrong = new RateLimiterMemory({ points: 3, duration: 3600, blockDuration: 86_400, keyPrefix: 'login' })

async function login(user, password) {
  const known = await wrong.get(user)
  if (known !== null && known.consumedPoints > wrong.points) return 'locked out'
  if (password === 'right') {
    await wrong.delete(user)
    return 'welcome'
  }
  try {
    const { remainingPoints } = await wrong.consume(user)
    return `wrong, ${remainingPoints} left`
  } catch (denied) {
    if (denied instanceof Error) throw denied
    return `locked out for ${Math.ceil(denied.msBeforeNext / 3_600_000)} hours`
  }
}

for (const password of ['a', 'b', 'right', 'c', 'd', 'e', 'right']) console.log(await login('ada', password))

// All at once: what was looked at before is true no more, and consume() decides.
console.log(await Promise.all(['a', 'b', 'c', 'd', 'e'].map((password) => login('bob', password))))

// Prints:
//   wrong, 2 left
//   wrong, 1 left
//   welcome
//   wrong, 2 left
//   wrong, 1 left
//   wrong, 0 left
//   locked out
//   [
//     'wrong, 2 left',
//     'wrong, 1 left',
//     'wrong, 0 left',
//     'locked out for 24 hours',
//     'locked out for 24 hours'
//   ]
