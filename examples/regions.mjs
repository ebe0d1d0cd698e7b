// Two regions, each with its own Redis, spend one budget, which a third Redis holds: the home. Takes are decided in their region.
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '@redis/client'
import { createLimiter, fixedWindow } from 'sluicegate'
import { redis } from 'sluicegate/redis'
import { region } from 'sluicegate/regions'

// Without addresses the three are databases of one server.
const { REDIS_URL = 'redis://127.0.0.1:6379', HOME_URL, WEST_URL, EAST_URL } = process.env
const [home, west, east] = await Promise.all(
  [HOME_URL, WEST_URL, EAST_URL].map(async (url, database) => {
    const client = createClient(url === undefined ? { url: REDIS_URL, database } : { url })
    client.on('error', (error) => console.error(error.message))
    return client.connect()
  }),
)
const policy = fixedWindow({ limit: 1_000, window: '365d', name: 'regions' })
// A long time, for a busy machine: leave `timeout` out.
const limiterIn = (name, client) =>
  createLimiter(policy, { store: region({ name, local: redis(client), home: redis(home), timeout: '6s' }), timeout: '6s' })
const limiters = [limiterIn('eu-west', west), limiterIn('us-east', east)]
await limiters[0].reset('global')
await limiters[1].reset('global')

let passed = 0
const passedOf = async (limiter) => {
  const decisions = await Promise.all(Array.from({ length: 5 }, () => limiter.take('global')))
  passed += decisions.filter(({ allowed }) => allowed).length
}
for (let round = 0; round < 40; round++) {
  await Promise.all(limiters.map(passedOf))
  await sleep(20)
}
const calls = limiters.reduce((sum, limiter) => sum + limiter.stats().region.homeCalls, 0)
console.log(`400 requests in two regions: ${passed} passed, with ${calls < passed / 2 ? 'far fewer' : calls} calls to the home`)

// What a region holds unused goes back to the home after some seconds.
while (passed < 1_000) {
  await passedOf(limiters[0])
  await sleep(20)
}
console.log(`${passed} passed in all, and the next is ${(await limiters[1].take('global')).allowed ? 'allowed' : 'denied'}`)

for (const limiter of limiters) {
  await limiter.reset('global')
  limiter.close()
}
await Promise.all([home, west, east].map((client) => client.close()))

// Prints:
//   400 requests in two regions: 400 passed, with far fewer calls to the home
//   1000 passed in all, and the next is denied
