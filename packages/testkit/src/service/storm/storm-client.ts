import { connect, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { type ConnectionOptions, connect as encrypt, type TLSSocket } from 'node:tls'
import type { Random } from 'sluicegate-testkit'

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
export async function stormClient(random: Random, port: number, bytes: Buffer, isEncrypted = false): Promise<void> {
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
