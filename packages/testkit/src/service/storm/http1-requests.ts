import type { Random } from 'sluicegate-testkit'
import { damaged } from '../fuzz/damaged.js'
import { PATHS, randomJson } from '../fuzz/fuzz-json.js'

const READ_PATHS = [
  '/v1/take',
  '/v1/peek',
  '/metrics',
  '/readyz',
  '/healthcheck',
  '/livez',
  '/',
  '/page.js',
  '/events',
  '/openapi.json',
  '/no',
]
const HEADS = ['Host: a\r\n', 'Host: a\r\nUser-Agent: b\r\n', 'Host: a\r\nConnection: close\r\n', 'Host: a\r\nExpect: 100-continue\r\n', '']

/** What a client sends over one connection: requests of all paths and methods, pipelined or not, with bodies that may be cut. */
export function randomHttp1(random: Random): Buffer {
  // One that sends the same head with each request is answered on a shorter way.
  const head = random.pick(HEADS)
  const requests = Array.from({ length: random.magnitude(1, 30) }, () =>
    randomRequest(random, random.chance(0.8) ? head : random.pick(HEADS)),
  )
  const bytes = Buffer.concat(requests)
  return random.chance(0.2) ? damaged(random, bytes) : bytes
}

/** What a reader of the page's events sends, and sometimes requests behind it. */
export function randomEventReader(random: Random): Buffer {
  const events = Buffer.from(`GET /events HTTP/1.1\r\n${random.pick(HEADS)}\r\n`)
  return random.chance(0.7) ? events : Buffer.concat([events, randomHttp1(random)])
}

function randomRequest(random: Random, head: string): Buffer {
  if (random.chance(0.6)) {
    const method = random.chance(0.9) ? 'GET' : random.pick(['HEAD', 'OPTIONS', 'DELETE', 'CONNECT', 'get', 'PRI'])
    const query = random.chance(0.7) ? `?policy=api&key=${random.pick(['a', 'b', '%C3%A9', ''])}` : ''
    return Buffer.from(`${method} ${random.pick(READ_PATHS)}${query} HTTP/1.1\r\n${head}\r\n`)
  }
  const path = random.pick(PATHS)
  const body = Buffer.from(randomJson(random, path))
  const kind = random.integer(0, 9)
  const length = kind < 6 ? body.length : random.pick([body.length + 5, 0, 20_000])
  const fields = kind < 8 ? `Content-Length: ${length}\r\n\r\n` : `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`
  return Buffer.concat([
    Buffer.from(`POST ${path} HTTP/1.1\r\n${head}Content-Type: application/json\r\n${fields}`),
    body,
    Buffer.from(kind === 8 ? '\r\n0\r\n\r\n' : ''),
  ])
}
