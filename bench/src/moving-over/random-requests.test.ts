import { test } from 'node:test'
import { compareRequests } from './express-runs.js'
import { compareOverSockets } from './flexible-runs.js'

// The long form is random-requests.long.test.ts, of other seeds.

test('our middleware and store answer 500 random requests as express-rate-limit does', async () => {
  await compareRequests(500, 1)
})

test('over Redis 500 random calls are answered as rate-limiter-flexible does', async () => {
  await compareOverSockets(500, 1)
})
