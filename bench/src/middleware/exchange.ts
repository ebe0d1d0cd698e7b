import { IncomingMessage, type RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Walk } from '../key-row.js'
import { keyIndices } from '../key-row.js'
import type { MiddlewareSetting } from './middleware-settings.js'

/** As a client sends them, and Node's parser hands them on. */
const HEADERS = [
  'Host',
  'localhost:3000',
  'User-Agent',
  'bench/1.0',
  'Accept',
  '*/*',
  'Accept-Encoding',
  'gzip, br',
  'Connection',
  'keep-alive',
]

/** A connection without a network: it tells the address of a client, and drops what is written to it. */
export class LightSocket extends Duplex {
  readonly remoteAddress: string
  readonly remotePort = 50_000
  readonly remoteFamily: string

  constructor(remoteAddress: string) {
    super()
    this.remoteAddress = remoteAddress
    this.remoteFamily = remoteAddress.includes(':') ? 'IPv6' : 'IPv4'
  }

  override _read(): void {}

  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    done()
  }

  override _writev(_chunks: unknown, done: () => void): void {
    done()
  }
}

/** What Node's parser calls: headers that are set otherwise are not found. */
type Parsed = IncomingMessage & { _addHeaderLines(headers: readonly string[], count: number): void }

/**
 * One request over a connection, from where Node's server has it parsed to where the whole response is with the socket. Request and response
 * are Node's own, as frameworks find them.
 *
 * @returns the status.
 */
export function exchange(listener: RequestListener, connection: LightSocket): Promise<number> {
  // Of a socket they use nothing that this one does not have.
  const socket = connection as unknown as Socket
  return new Promise((resolve) => {
    const request = new IncomingMessage(socket)
    request.httpVersion = '1.1'
    request.httpVersionMajor = 1
    request.httpVersionMinor = 1
    request.method = 'GET'
    request.url = '/'
    ;(request as Parsed)._addHeaderLines(HEADERS, HEADERS.length)
    request.complete = true
    request.push(null)
    // Node's server has looked at them, too, before it calls a handler.
    if (request.headers.host === undefined) throw new Error('a request without its headers')
    const response = new ServerResponse(request)
    response.assignSocket(socket)
    response.once('finish', () => {
      response.detachSocket(socket)
      resolve(response.statusCode)
    })
    listener(request, response)
  })
}

/** Statuses from here on are denials. */
const DENIED = 400

/** Requests over these connections in a fixed random order, each after the last was answered. */
export function exchangeWalk(listener: RequestListener, connections: readonly LightSocket[]): Walk {
  const order = keyIndices(connections.length)
  const mask = order.length - 1
  let position = 0
  return async (requests) => {
    let allowed = 0
    for (let left = requests; left > 0; left--) {
      const connection = connections[order[position++ & mask] as number] as LightSocket
      if ((await exchange(listener, connection)) < DENIED) allowed++
    }
    return allowed
  }
}

const MANY_CLIENTS = 10_000

/** The addresses that sockets tell, each once. */
export function clientAddresses(clients: MiddlewareSetting['clients']): readonly string[] {
  switch (clients) {
    case 'one':
      return ['203.0.113.7']
    case 'many':
      return Array.from({ length: MANY_CLIENTS }, (_, i) => `10.${i >>> 16}.${(i >>> 8) & 255}.${i & 255}`)
    // The address that a server on all addresses sees of a client over IPv4.
    case 'mapped':
      return ['::ffff:203.0.113.7']
    case 'ipv6':
      return ['2001:db8:1234:5678:9abc:def0:1234:5678']
  }
}
