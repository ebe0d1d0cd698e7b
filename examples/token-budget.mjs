// A language model with N tokens per minute, which counts the real cost of each answer: reserve before, settle after.
import { createServer } from 'node:http'
import { createLimiter, tokenBucket } from 'sluicegate'
import { limitedFetch } from 'sluicegate/outbound'

// The model, behind HTTP: 6,000 tokens per minute; it refuses the second request once.
const theirs = createLimiter(tokenBucket({ limit: 6_000, window: '1m' }))
let requests = 0
const model = createServer(async (request, response) => {
  let prompt = ''
  for await (const chunk of request) prompt += chunk
  requests++
  if (requests === 2) {
    response.writeHead(429, { 'Retry-After': '1' })
    return response.end()
  }
  const used = 100 * prompt.length
  const { allowed } = theirs.take('us', used)
  response.statusCode = allowed ? 200 : 429
  response.end(JSON.stringify({ text: prompt.toUpperCase(), usage: { total_tokens: used } }))
})
await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${model.address().port}/v1/complete`

// Requests: two at once; a 429 is retried after its time, because the request was not processed.
const polite = limitedFetch(fetch, { concurrency: 2, onRetry: ({ status }) => console.log(`received ${status}, sent again`) })
// Tokens: our own count of the model's limit. A reservation is charged at once, so concurrent requests see each other.
const tokens = createLimiter(tokenBucket({ limit: 6_000, window: '1m' }))

async function ask(prompt, { most }) {
  const reservation = tokens.reserve('model', most, { maxWait: '30s' })
  if (reservation.waitMs === Infinity) throw new Error(`${most} tokens are more than the model ever allows`)
  if (!reservation.allowed) throw new Error(`not enough tokens for "${prompt}" soon`)
  await new Promise((resolve) => setTimeout(resolve, reservation.waitMs))
  try {
    const response = await polite(url, { method: 'POST', body: prompt })
    if (!response.ok) {
      await response.body?.cancel() // otherwise its slot is held for bodyTimeout
      throw new Error(`the model says ${response.status}`)
    }
    const { text, usage } = await response.json()
    reservation.settle(usage.total_tokens) // a surplus is returned, a shortfall becomes debt
    return text
  } catch (error) {
    reservation.cancel()
    throw error
  }
}

console.log(await ask('one', { most: 2_000 }))
console.log(await ask('two', { most: 2_000 }))
console.log(await ask('three', { most: 300 })) // takes 500: a debt of 200 beyond the estimate
const left = tokens.peek('model').remaining
console.log(left >= 4_900 && left < 5_400 ? 'about 4,900 tokens are left, and the refill of a second or two' : `${left} tokens are left`)
await ask('everything', { most: 7_000 }).catch((error) => console.log(error.message))
await Promise.all([ask('a', { most: 4_000 }), ask('b', { most: 5_000 }).catch((error) => console.log(error.message))])
model.close()
model.closeAllConnections()

// Prints:
//   ONE
//   received 429, sent again
//   TWO
//   THREE
//   about 4,900 tokens are left, and the refill of a second or two
//   7000 tokens are more than the model ever allows
//   not enough tokens for "b" soon
