import { Random } from 'sluicegate-testkit'
import { damaged } from '../fuzz/damaged.js'
import { PATHS, randomJson } from '../fuzz/fuzz-json.js'
import { randomInput } from '../fuzz/fuzz-resp.js'
import { type Bystander, bystanders } from './bystanders.js'
import { randomHttp2 } from './http2-frames.js'
import { stormClient } from './storm-client.js'
import type { StormedService } from './stormed-service.js'

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
function randomHttp1(random: Random): Buffer {
  // One that sends the same head with each request is answered on a shorter way.
  const head = random.pick(HEADS)
  const requests = Array.from({ length: random.magnitude(1, 30) }, () =>
    randomRequest(random, random.chance(0.8) ? head : random.pick(HEADS)),
  )
  const bytes = Buffer.concat(requests)
  return random.chance(0.2) ? damaged(random, bytes) : bytes
}

/** What a reader of the page's events sends, and sometimes requests behind it. */
function randomEventReader(random: Random): Buffer {
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

type Port = keyof StormedService['urls']

/** What clients of a storm send, and where. */
const STORMS = {
  http: { port: 'http', bytes: randomHttp1 },
  admin: { port: 'admin', bytes: randomHttp1 },
  events: { port: 'http', bytes: randomEventReader },
  grpc: { port: 'grpc', bytes: randomHttp2 },
  resp: {
    port: 'resp',
    bytes: (random: Random) => Buffer.concat(Array.from({ length: random.magnitude(1, 20) }, () => randomInput(random))),
  },
} satisfies Readonly<Record<string, { readonly port: Port; readonly bytes: (random: Random) => Buffer }>>

export type StormName = keyof typeof STORMS
export const STORM_NAMES = Object.keys(STORMS) as StormName[]

/** Clients at once. */
const AT_ONCE = 50

/**
 * `clients` clients of one protocol that each break off in the middle, many at once, while bystanders call over all protocols. Rejects where one of those
 * has no answer or a wrong one. Each client has its own seed, so that `seed` and its number repeat what it does.
 *
 * @returns the calls of bystanders.
 */
export async function storm(stormed: StormedService, name: StormName, seed: number, clients: number): Promise<number> {
  const { port, bytes } = STORMS[name]
  const at = Number(stormed.urls[port].port)
  let next = 0
  let isOver = false
  let calls = 0
  const attack = async (): Promise<void> => {
    while (next < clients) {
      const random = new Random(seed * 1_000_003 + next++)
      await stormClient(random, at, bytes(random), stormed.ca !== undefined)
    }
  }
  const others = await bystanders(stormed)
  const call = async (bystander: Bystander): Promise<void> => {
    do {
      await bystander.call()
      calls++
    } while (!isOver)
  }
  const attacks = Promise.all(Array.from({ length: AT_ONCE }, attack)).finally(() => {
    isOver = true
  })
  try {
    await Promise.all([attacks, ...others.map(call)])
  } catch (error) {
    throw new Error(`${name}, seed ${seed}: ${(error as Error).message}; the log: ${stormed.log()}`, { cause: error })
  } finally {
    next = clients
    for (const each of others) each.close()
  }
  return calls
}
