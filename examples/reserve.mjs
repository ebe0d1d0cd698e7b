// The tokens of a language model: how many an answer takes is known only afterwards.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, slidingWindow } from 'sluicegate'

const tokens = createLimiter(slidingWindow({ limit: 10_000, window: '1h' }))

async function ask(tenant, prompt) {
  const reservation = tokens.reserve(tenant, 4_000) // an estimate on the safe side, charged now
  if (!reservation.allowed) throw new Error('more than an hour allows')
  await sleep(reservation.waitMs) // 0 while there are enough
  try {
    const answer = await model(prompt)
    reservation.settle(answer.tokens) // the rest comes back
    return answer.text
  } catch (error) {
    reservation.cancel() // all of it comes back
    throw error
  }
}

async function model(prompt) {
  if (prompt === '') throw new Error('nothing asked')
  return { text: 'Forty-two.', tokens: 1_250 }
}

console.log(await ask('acme', 'What is six times seven?'))
console.log(tokens.peek('acme').remaining, 'left')
await ask('acme', '').catch((error) => console.log(error.message))
console.log(tokens.peek('acme').remaining, 'left')

// Prints:
//   Forty-two.
//   8750 left
//   nothing asked
//   8750 left
