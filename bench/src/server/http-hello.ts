import { createServer } from 'node:http'

// The bare servers that the service is compared with. Without an argument the least that Node can answer; with "same" an answer of the same headers and
// the same length as that of a take, which it does not work out. Prints its port.

const BODY = JSON.stringify({
  allowed: true,
  policy: 'api',
  limit: 10_000_000,
  remaining: 9_999_999,
  retryAfterMs: 0,
  resetAfterMs: 1,
  source: 'memory',
})
const HEADERS = [
  ['Cache-Control', 'no-store'],
  ['X-Content-Type-Options', 'nosniff'],
  ['RateLimit-Policy', '"api";q=10000000;w=1'],
  ['RateLimit', '"api";r=9999999;t=1'],
  ['Content-Type', 'application/json'],
  ['Content-Length', String(BODY.length)],
].flat()

const server =
  process.argv[2] === 'same'
    ? createServer({ noDelay: true }, (_, response) => {
        response.writeHead(200, HEADERS)
        response.end(BODY)
      })
    : createServer((_, response) => {
        response.end('hello')
      })
server.listen(0, '127.0.0.1', () => console.log((server.address() as { port: number }).port))
