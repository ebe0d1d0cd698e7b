// Hono on Cloudflare Workers: a limit for each API key, exact over all data centers, held by a Durable Object for each key.
import { env, waitUntil } from 'cloudflare:workers'
import { Hono } from 'hono'
import { createLimiter, tokenBucket } from 'sluicegate'
import { durableObjects, limiterObject } from 'sluicegate/durable-objects'
import { rateLimit } from 'sluicegate/hono'
import { apiKey } from 'sluicegate/keys'

const perKey = tokenBucket({ limit: 100, window: '1m', burst: 20, name: 'per-key' })

/** The class of the objects, which wrangler.jsonc names. */
export const Limits = limiterObject([perKey])

const limiter = createLimiter(perKey, { store: durableObjects(env.LIMITS, { waitUntil }), timeout: '1s' })

const app = new Hono()
app.use('/api/*', rateLimit({ limiter, key: apiKey() }))
app.get('/api/hello', (context) => context.text('hello'))

export default app
