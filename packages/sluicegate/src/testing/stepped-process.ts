import { writeFileSync } from 'node:fs'
import { createLimiter, fixedWindow } from '../index.js'

// A process whose wall clock is stepped while it runs, by the file that it is given; it prints what a key of a day's window was told.

const [, , stepFile = ''] = process.argv
const limiter = createLimiter(fixedWindow({ limit: 10, window: 'day' }))

/** When it was asked, the key, whether it passed, and else for how long it is denied. */
function told(): readonly [Date, string, boolean, number] {
  const now = new Date()
  const { allowed, retryAfterMs } = limiter.take('k', 6)
  return [now, 'k', allowed, retryAfterMs]
}

const answers = [told(), told()]
writeFileSync(stepFile, '+24h')
answers.push(told())
writeFileSync(stepFile, '+0h')
answers.push(told())
console.log(JSON.stringify(answers))
