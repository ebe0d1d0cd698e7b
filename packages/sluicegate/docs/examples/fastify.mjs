// Fastify: a limit for all routes, one route with its own, one without, and one for requests without a route.
import fastify from 'fastify'
import { tokenBucket } from 'sluicegate'
import { rateLimit } from 'sluicegate/fastify'

const app = fastify()
await app.register(rateLimit(tokenBucket({ limit: 2, window: '1m', name: 'all' })))

app.setNotFoundHandler({ preHandler: app.rateLimit(tokenBucket({ limit: 1, window: '1h', name: 'unknown' })) }, (_request, reply) =>
  reply.code(404).send('not here'),
)
app.get('/', async () => 'hello')
app.get('/search', { config: { rateLimit: tokenBucket({ limit: 1, window: '1m', name: 'search' }) } }, async () => 'found')
app.get('/health', { config: { rateLimit: false } }, async () => 'well')

const url = await app.listen({ port: 0, host: '127.0.0.1' })
for (const path of ['/search', '/search', '/health', '/', '/none', '/']) {
  const response = await fetch(url + path)
  console.log(path, response.status, response.headers.get('ratelimit-policy'))
}
await app.close()

// Prints:
//   /search 200 "search";q=1;w=60
//   /search 429 "search";q=1;w=60
//   /health 200 null
//   / 200 "all";q=2;w=60
//   /none 404 "unknown";q=1;w=3600
//   / 429 "all";q=2;w=60
