import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { keyIndices } from '../key-row.js'
import { clientAddresses } from './exchange.js'
import type { Counted } from './side-runs.js'

/** The job of a load process. */
export interface LoadJob {
  readonly port: number
  readonly ms: number
  readonly connections: number
  /** Of all requests; default `/`. */
  readonly path?: string
  /** Whether the header of a proxy names another of 10,000 clients for each request. */
  readonly manyClients: boolean
}

/** What came of it. */
export interface Load extends Counted {
  readonly elapsedMs: number
}

const DENIED = 400

/** Each connection has one request under way, and sends the next as soon as the last was answered, for so long. */
export async function load({ port, ms, connections, manyClients, path = '/' }: LoadJob): Promise<Load> {
  const next = requests(manyClients, path)
  const sockets = Array.from({ length: connections }, () => connect({ port, host: '127.0.0.1', noDelay: true }))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const fromMs = performance.now()
  const untilMs = fromMs + ms
  const counts = await Promise.all(sockets.map((socket) => caller(socket, next, untilMs)))
  const elapsedMs = performance.now() - fromMs
  const sum = (of: keyof Counted): number => counts.reduce((total, count) => total + count[of], 0)
  return { requests: sum('requests'), allowed: sum('allowed'), elapsedMs }
}

function caller(socket: Socket, next: () => Buffer, untilMs: number): Promise<Counted> {
  return new Promise((resolve, reject) => {
    let received = ''
    let requests = 0
    let allowed = 0
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the server closed a connection')))
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const response = firstResponse(received)
      if (response === undefined) return
      received = received.slice(response.length)
      requests++
      if (response.status < DENIED) allowed++
      if (performance.now() < untilMs) socket.write(next())
      else {
        // Settled first: what the end of the connection says comes too late.
        resolve({ requests, allowed })
        socket.destroy()
      }
    })
    socket.write(next())
  })
}

/** The next request as bytes, made before the first is sent. */
function requests(manyClients: boolean, path: string): () => Buffer {
  if (!manyClients) {
    const only = request(path, '')
    return () => only
  }
  const all = clientAddresses('many').map((address) => request(path, `X-Forwarded-For: ${address}\r\n`))
  const order = keyIndices(all.length)
  let position = 0
  return () => all[order[position++ & (order.length - 1)] as number] as Buffer
}

function request(path: string, more: string): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1.0\r\nAccept: */*\r\n${more}\r\n`, 'latin1')
}

/** A response of HTTP/1.1 at the beginning of what was received. */
export interface FirstResponse {
  readonly status: number
  /** Of all of it, head and body. */
  readonly length: number
}

const HEAD_END = '\r\n\r\n'

/**
 * The first response in `received`, or undefined while it is not all there. Enough for what apps here send: bodies of a declared length or in
 * chunks, without trailers.
 *
 * @param received a character for each byte, as `latin1` has it.
 */
export function firstResponse(received: string): FirstResponse | undefined {
  const headEnd = received.indexOf(HEAD_END)
  if (headEnd < 0) return undefined
  const head = received.slice(0, headEnd)
  const length = bodyLength(head, received, headEnd + HEAD_END.length)
  if (length === undefined) return undefined
  const end = headEnd + HEAD_END.length + length
  return end > received.length ? undefined : { status: Number(head.slice(9, 12)), length: end }
}

function bodyLength(head: string, received: string, bodyAt: number): number | undefined {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)
  if (length !== null) return Number(length[1])
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) throw new Error(`a response with no length or chunked encoding: ${head}`)
  let at = bodyAt
  for (;;) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(received.slice(at, lineEnd), 16)
    at = lineEnd + 2 + size + 2
    if (size === 0) return at - bodyAt
    if (at > received.length) return undefined
  }
}
