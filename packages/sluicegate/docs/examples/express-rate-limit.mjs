// Migrated from express-rate-limit: the same options, another import. 3 requests per minute for each client, JSON for denials.
import express from 'express'
import { rateLimit } from 'sluicegate/express-rate-limit'

const app = express()
// Or keep express-rate-limit and change only the store: rateLimit({ ..., store: new SluicegateStore() }).
const limit = rateLimit({
  windowMs: 60_000,
  limit: 3,
  standardHeaders: 'draft-7',
  legacyHeaders: false,
  message: { error: 'slow down' },
  keyGenerator: (request) => request.get('x-user'),
})
app.use(limit)
app.get('/', (request, response) => response.send(`hello, ${request.rateLimit.used} of ${request.rateLimit.limit}`))

const server = app.listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const ask = async (user) => {
  const response = await fetch(`http://127.0.0.1:${server.address().port}`, { headers: { 'x-user': user } })
  console.log(user, response.status, response.headers.get('ratelimit').split(', reset')[0], await response.text())
}

for (const user of ['ada', 'ada', 'ada', 'ada', 'bob']) await ask(user)
await limit.resetKey('ada')
await ask('ada')
server.close()
server.closeAllConnections()

// Prints:
//   ada 200 limit=3, remaining=2 hello, 1 of 3
//   ada 200 limit=3, remaining=1 hello, 2 of 3
//   ada 200 limit=3, remaining=0 hello, 3 of 3
//   ada 429 limit=3, remaining=0 {"error":"slow down"}
//   bob 200 limit=3, remaining=2 hello, 1 of 3
//   ada 200 limit=3, remaining=2 hello, 1 of 3
