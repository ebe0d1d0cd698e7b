// An app that streams answers and sells them by the token: a plan each day, then prepaid credits; a warning at 80 %; a ledger of what was spent.
import express from 'express'
import { createLimiter, credits, firstOf, fixedWindow } from 'sluicegate'
import { holdOf, rateLimit } from 'sluicegate/express'
import { createLedger, replayedLedger } from 'sluicegate/ledger'

const records = []
const ledger = createLedger({ append: async (batch) => records.push(...batch) }) // in an app: postgresLedger(pool)
const plan = createLimiter(fixedWindow({ limit: 100, window: 'day', name: 'plan' }), {
  ledger,
  soft: ['80%'],
  onSoft: ({ key, threshold }) => console.log(`mail to ${key}: ${threshold} of your plan is spent`),
})
const prepaid = createLimiter(credits({ limit: 1_000, name: 'credits' }), { ledger })
prepaid.penalize('ada', 1_000) // nobody begins with credits
const limiter = firstOf([plan, prepaid])

/** A model: pieces of text, each of which costs a token. */
async function* model(tokens) {
  for (let i = 0; i < tokens; i++) yield 'word '
}

const app = express()
app.use(rateLimit({ limiter, key: (request) => request.headers['x-user'], cost: { expect: 20 }, headers: 'none' }))
app.get('/answer', async (request, response) => {
  const hold = holdOf(request)
  let said = 0
  for await (const piece of model(Number(request.query.tokens))) {
    if (!(await hold.add(1))) break // neither the plan nor credits are left
    response.write(piece)
    said++
  }
  response.end()
  console.log(`${request.headers['x-user']}: ${said} of ${request.query.tokens} tokens`)
})
const server = app.listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))

async function ask(tokens) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}/answer?tokens=${tokens}`, { headers: { 'x-user': 'ada' } })
  if (response.status === 429) console.log('ada: 429, buy credits')
  await response.text()
}

await ask(70)
await ask(50) // the plan ends within the answer
await ask(5)
prepaid.refund('ada', 60) // a top-up
await ask(50)

await ledger.close()
const spent = replayedLedger(records).map(({ policy, spent }) => `${policy} ${spent}`)
console.log(spent.join(', '))
server.close()
server.closeAllConnections()

// Prints:
//   ada: 70 of 70 tokens
//   mail to ada: 80% of your plan is spent
//   ada: 30 of 50 tokens
//   ada: 429, buy credits
//   ada: 50 of 50 tokens
//   credits 990, plan 100
