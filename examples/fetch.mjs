// `Request` in, `Response` or nothing out: for Bun, Deno, proxies of Next.js on Node.js, and any server that speaks Fetch. Edge functions
// have no shared memory: there give a limiter that asks elsewhere, see docs/frameworks.md.
import { tokenBucket } from 'sluicegate'
import { rateLimit } from 'sluicegate/fetch'
import { apiKey } from 'sluicegate/keys'

const limit = rateLimit({ policy: tokenBucket({ limit: 2, window: '1m', name: 'customer' }), key: apiKey() })
const request = () => new Request('http://localhost/', { headers: { 'x-api-key': 'ada' } })

// As middleware: nothing means go on. In Next.js: `export const proxy = (request) => limit(request)`.
console.log((await limit(request()))?.status ?? 'goes on')

// Around a handler, whose responses get headers: `Deno.serve(handler)`, `Bun.serve({ fetch: handler })`.
const handler = limit.wrap(() => new Response('hello'))
for (let i = 0; i < 2; i++) {
  const { status, headers } = await handler(request())
  console.log(status, headers.get('ratelimit').split(';t=')[0])
}

// Prints:
//   goes on
//   200 "customer";r=0
//   429 "customer";r=0
