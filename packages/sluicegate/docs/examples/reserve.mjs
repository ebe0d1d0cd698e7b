// The tokens of a language model: the cost of an answer is known only afterwards.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, slidingWindow } from 'sluicegate'

const tokens = createLimiter(slidingWindow({ limit: 10_000, window: '1h' }))

async function ask(tenant, prompt) {
  const reservation = tokens.reserve(tenant, 4_000) // an overestimate, charged now
  if (!reservation.allowed) throw new Error('more than an hour allows')
  await sleep(reservation.waitMs) // 0 while there are enough tokens
  try {
    const answer = await model(prompt)
    reservation.settle(answer.tokens) // the surplus is returned
    return answer.text
  } catch (error) {
    reservation.cancel() // everything is returned
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
