// A language model with N tokens per minute, which counts the real cost of each answer: a job holds what it may cost.
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
// Tokens: our own count of the model's limit. A job holds what it may cost, so that jobs at the same time see each other, and pays what it did cost.
const tokens = createLimiter(tokenBucket({ limit: 6_000, window: '1m' }))

function ask(prompt, { most }) {
  const job = async ({ settle }) => {
    const response = await polite(url, { method: 'POST', body: prompt })
    if (!response.ok) {
      await response.body?.cancel() // otherwise its slot is held for bodyTimeout
      throw new Error(`the model says ${response.status}`)
    }
    const { text, usage } = await response.json()
    await settle(usage.total_tokens)
    return text
  }
  return tokens.run('model', job, { cost: { most }, maxWait: '30s' })
}

console.log(await ask('one', { most: 2_000 }))
console.log(await ask('two', { most: 2_000 }))
console.log(await ask('three', { most: 300 })) // takes 500: more than it held, and there is room
const left = tokens.peek('model').remaining
console.log(left >= 4_900 && left < 5_400 ? 'about 4,900 tokens are left, and the refill of a second or two' : `${left} tokens are left`)
// The second does not fit beside the first, and starts when that has said what it cost.
const order = []
await Promise.all(['a', 'b'].map((prompt) => ask(prompt, { most: 4_000 }).then((text) => order.push(text))))
console.log(order.join(' before '))
model.close()
model.closeAllConnections()

// Prints:
//   ONE
//   received 429, sent again
//   TWO
//   THREE
//   about 4,900 tokens are left, and the refill of a second or two
//   A before B
