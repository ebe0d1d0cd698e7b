import { writeFileSync } from 'node:fs'
import { createLimiter, fixedWindow } from '../../../sluicegate/dist/index.js'

// A process whose wall clock is stepped while it runs, by the file in its arguments. It prints the answers for a key of a one-day window.

const [, , stepFile = ''] = process.argv
const limiter = createLimiter(fixedWindow({ limit: 10, window: 'day' }))

/** When it was asked, the key, whether it passed, and else for how long it is denied. */
function answer(): readonly [Date, string, boolean, number] {
  const now = new Date()
  const { allowed, retryAfterMs } = limiter.take('k', 6)
  return [now, 'k', allowed, retryAfterMs]
}

const answers = [answer(), answer()]
writeFileSync(stepFile, '+24h')
answers.push(answer())
writeFileSync(stepFile, '+0h')
answers.push(answer())
console.log(JSON.stringify(answers))
