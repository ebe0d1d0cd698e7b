import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { type ConnectionOptions, connect as encrypt, type TLSSocket } from 'node:tls'
import { Random } from 'sluicegate-testkit'
import { damaged } from '../fuzz/fuzz-input.js'
import { PATHS, randomInput, randomJson } from '../fuzz/fuzz-texts.js'
import type { StormedService } from './bystanders.js'
import { type Bystander, bystanders } from './bystanders.js'
import { randomHttp2 } from './http2-frames.js'

/** No handshake and nothing that a client of a storm sends is longer, encrypted. */
const LONGEST_BYTES = 8_000

/**
 * The wire under an encrypted connection: bytes of the handshake and of records pass in pieces of any size, until one piece is changed or the wire is cut,
 * anywhere.
 */
class CutWire extends Duplex {
  readonly #socket: Socket
  readonly #random: Random
  /** Bytes that still pass. */
  #left: number
  readonly #isChanging: boolean

  constructor(socket: Socket, random: Random) {
    super()
    this.#socket = socket
    this.#random = random
    this.#left = random.magnitude(1, LONGEST_BYTES)
    this.#isChanging = random.chance(0.3)
    socket.on('data', (bytes) => {
      if (!this.push(bytes)) socket.pause()
    })
    socket.once('close', () => this.destroy())
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(bytes: Buffer, _encoding: string, done: () => void): void {
    for (let at = 0; at < bytes.length && this.#left > 0; ) {
      const next = Math.min(bytes.length, at + (this.#random.chance(0.7) ? bytes.length : this.#random.magnitude(1, 400)))
      const piece = Buffer.from(bytes.subarray(at, Math.min(next, at + this.#left)))
      this.#left -= piece.length
      if (this.#left === 0 && this.#isChanging) {
        const place = this.#random.integer(0, piece.length - 1)
        piece[place] = (piece[place] ?? 0) ^ (1 << this.#random.integer(0, 7))
        // What follows the changed byte passes as it is.
        this.#left = LONGEST_BYTES * 2
      }
      this.#socket.write(piece)
      at = next
    }
    // The one that waits for an answer to what was cut goes on waiting, as a client on a dead network does.
    setImmediate(done)
  }

  override _final(done: () => void): void {
    this.#socket.end()
    done()
  }

  override _destroy(_error: Error | null, done: () => void): void {
    this.#socket.destroy()
    done()
  }
}

/** How a client leaves, in the middle of whatever it was doing; one that encrypts, with an alert or without. */
const DEPARTURES: readonly ((socket: Socket, sender: Socket) => void)[] = [
  (socket) => socket.destroy(),
  (socket) => socket.resetAndDestroy(),
  (socket) => socket.end(),
  (_, sender) => sender.destroy(),
  (_, sender) => sender.end(),
]
/** A client that has closed its side waits this long for the other one. */
const LONGEST_END_MS = 100
/** A client whose handshake does not end sends what it has to send without. */
const LONGEST_HANDSHAKE_MS = 100

/** Protocols that a client offers in its handshake: those of the service, others, too many, or none. */
const OFFERS: readonly (readonly string[])[] = [
  ['h2'],
  ['h2'],
  ['h2', 'http/1.1'],
  ['http/1.1'],
  ['spdy/3'],
  Array.from({ length: 60 }, (_, i) => `none-${i}`),
  [],
]

/**
 * One client that sends a part of `bytes`, cut anywhere, in pieces of any size and with rests between them; it reads or does not, and leaves at any moment
 * in one of the ways in which connections end. Resolves when it has left.
 *
 * @param isEncrypted whether the port expects a handshake. The client then also breaks it off, sends it slowly or with a changed byte, offers other
 * protocols, asks for another one in the middle, or sends none.
 */
async function stormClient(random: Random, port: number, bytes: Buffer, isEncrypted = false): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => undefined)
  const sender = isEncrypted && random.chance(0.95) ? await encrypted(random, socket) : socket
  if (random.chance(0.7)) sender.resume()
  const end = random.chance(0.6) ? bytes.length : random.integer(0, bytes.length)
  for (let at = 0; at < end && !sender.destroyed; ) {
    const next = Math.min(end, at + (random.chance(0.5) ? end : random.magnitude(1, 2_000)))
    sender.write(bytes.subarray(at, next))
    at = next
    await rest(random)
    if (sender !== socket && random.chance(0.05)) renegotiate(sender as TLSSocket)
  }
  await rest(random)
  random.pick(DEPARTURES)(socket, sender)
  const late = new Promise<void>((resolve) => setTimeout(resolve, LONGEST_END_MS))
  await Promise.race([closed, late])
  sender.destroy()
  socket.destroy()
  // Node.js says no more of some sockets under an encrypted connection that were reset.
  if (sender === socket) await closed
}

/** The encrypted connection over a socket; after a while also where its handshake has not ended. */
async function encrypted(random: Random, socket: Socket): Promise<TLSSocket> {
  const options: ConnectionOptions = {
    socket: random.chance(0.4) ? (new CutWire(socket, random) as unknown as Socket) : socket,
    rejectUnauthorized: false,
    ALPNProtocols: [...random.pick(OFFERS)],
    maxVersion: random.chance(0.5) ? 'TLSv1.2' : 'TLSv1.3',
  }
  const secure = encrypt(options)
  secure.on('error', () => undefined)
  await new Promise<void>((resolve) => {
    const late = setTimeout(resolve, LONGEST_HANDSHAKE_MS)
    const done = (): void => {
      clearTimeout(late)
      resolve()
    }
    secure.once('secureConnect', done).once('close', done)
  })
  return secure
}

/** TLS 1.2 only: a handshake in the middle of a connection. */
function renegotiate(secure: TLSSocket): void {
  if (secure.getProtocol() !== 'TLSv1.2') return
  // Each one that waits has a listener.
  secure.setMaxListeners(0)
  for (let i = 0; i < 5 && !secure.destroyed; i++) secure.renegotiate({ rejectUnauthorized: false }, () => undefined)
}

async function rest(random: Random): Promise<void> {
  const kind = random.integer(0, 9)
  if (kind < 5) return
  if (kind < 9) return nextTurn()
  await sleep(random.magnitude(1, 20))
}

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
