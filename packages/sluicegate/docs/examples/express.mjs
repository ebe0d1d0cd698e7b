// Express: 3 requests per minute for each client, and 2 failed logins per hour.
import express from 'express'
import { tokenBucket } from 'sluicegate'
import { rateLimit } from 'sluicegate/express'

const app = express()
// Behind one proxy: rateLimit({ policy, key: address({ trustedHops: 1 }) }), with `address` of sluicegate/keys.
const perClient = rateLimit(tokenBucket({ limit: 3, window: '1m', name: 'client' }))
const failures = rateLimit({ policy: tokenBucket({ limit: 2, window: '1h', name: 'login' }), counts: 'failures' })

app.post('/login', failures, (request, response) => response.sendStatus(request.query.password === 'right' ? 204 : 401))
app.get('/', perClient, (_request, response) => response.send('hello'))

const server = app.listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const url = `http://127.0.0.1:${server.address().port}`

for (let i = 0; i < 4; i++) {
  const { status, headers } = await fetch(url)
  console.log(`GET / ${status}, ${headers.get('ratelimit').split(';t=')[0]}`)
}
for (const password of ['right', 'right', 'wrong', 'wrong', 'right']) {
  const { status } = await fetch(`${url}/login?password=${password}`, { method: 'POST' })
  console.log(`POST /login ${password}: ${status}`)
}
server.close()
server.closeAllConnections()

// Prints:
//   GET / 200, "client";r=2
//   GET / 200, "client";r=1
//   GET / 200, "client";r=0
//   GET / 429, "client";r=0
//   POST /login right: 204
//   POST /login right: 204
//   POST /login wrong: 401
//   POST /login wrong: 401
//   POST /login right: 429
