import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { keyIndices } from '../key-row.js'
import { clientAddresses } from './exchange.js'
import { firstResponse } from './first-response.js'
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
