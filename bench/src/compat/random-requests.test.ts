import { test } from 'node:test'
import { shortOrLong } from 'sluicegate-testkit'
import { compareRequests } from './express-runs.js'

// random-requests.long.test.ts goes on with other seeds.

const REQUESTS = shortOrLong(100, 500)

test(`our middleware and store answer ${REQUESTS} random requests as express-rate-limit does`, async () => {
  await compareRequests(REQUESTS, 1)
})
