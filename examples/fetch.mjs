// `Request` in, `Response` or undefined out: for Bun, Deno, proxies of Next.js on Node.js, and any server with the Fetch API. Edge functions
// have no shared memory: pass a limiter that calls a service there, see docs/frameworks.md.
import { tokenBucket } from 'sluicegate'
import { rateLimit } from 'sluicegate/fetch'
import { apiKey } from 'sluicegate/keys'

const limit = rateLimit({ policy: tokenBucket({ limit: 2, window: '1m', name: 'customer' }), key: apiKey() })
const request = () => new Request('http://localhost/', { headers: { 'x-api-key': 'ada' } })

// By itself: undefined means continue, with headers for the response.
const first = request()
console.log((await limit(first))?.status ?? 'goes on', limit.headers(first).get('ratelimit').split(';t=')[0])

// Around a handler, whose responses get headers: `Deno.serve(handler)`, `Bun.serve({ fetch: handler })`.
const handler = limit.wrap(() => new Response('hello'))
for (let i = 0; i < 2; i++) {
  const { status, headers } = await handler(request())
  console.log(status, headers.get('ratelimit').split(';t=')[0])
}

// Prints:
//   goes on "customer";r=1
//   200 "customer";r=0
//   429 "customer";r=0
