// Hono on Node; on Bun and Deno the same app, served by `Bun.serve({ fetch: app.fetch })` or `Deno.serve(app.fetch)`.
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { fixedWindow, tokenBucket } from 'sluicegate'
import { rateLimit } from 'sluicegate/hono'
import { address, apiKey } from 'sluicegate/keys'

const app = new Hono()
app.use(
  '/api/*',
  rateLimit({
    limits: [
      { policy: tokenBucket({ limit: 2, window: '1m', name: 'customer' }), key: apiKey({ otherwise: address() }) },
      { policy: fixedWindow({ limit: 3, window: 'day', name: 'global' }), key: () => 'all' },
    ],
  }),
)
app.get('/api/hello', (context) => context.text('hello'))

const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
await new Promise((resolve) => server.once('listening', resolve))
const url = `http://127.0.0.1:${server.address().port}/api/hello`

for (const customer of ['ada', 'ada', 'ada', 'bob', 'bob']) {
  const response = await fetch(url, { headers: { 'x-api-key': customer } })
  const violated = response.ok ? '' : `, violates ${(await response.json())['violated-policies']}`
  console.log(`${customer}: ${response.status}${violated}`)
}
server.close()
server.closeAllConnections()

// Prints:
//   ada: 200
//   ada: 200
//   ada: 429, violates customer
//   bob: 200
//   bob: 429, violates global
