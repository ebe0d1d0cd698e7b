// Charges only failed logins: five wrong passwords per day, correct ones without limit.
import { createLimiter, fixedWindow } from 'sluicegate'

const attempts = createLimiter(fixedWindow({ limit: 5, window: 'day' }))

function login(user, password) {
  if (!attempts.take(user).allowed) return 'too many attempts, come back tomorrow'
  if (password !== 'open sesame') return 'wrong'
  attempts.refund(user, 1)
  return 'welcome'
}

for (let i = 0; i < 10; i++) login('ali', 'open sesame')
console.log(attempts.peek('ali').remaining)
for (let i = 0; i < 5; i++) login('thief', `guess ${i}`)
console.log(login('thief', 'open sesame'))

// Prints:
//   5
//   too many attempts, come back tomorrow
