import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { ClientBounds } from '../../config/config.js'
import { Connections } from './connections.js'
import { Problem } from './problem.js'

/** Room for every key that is allowed, percent-encoded. */
const MAX_HEADER_BYTES = 16_384
/** Connections beyond the bound that are kept until they are refused with a response; more are closed without one. */
const REFUSED_AT_ONCE = 64

/** An HTTP server that is not listening yet, and its connections. */
export interface Listener {
  readonly server: Server
  readonly connections: Connections
}

/** An HTTP server with bounds on what a client may send, how long it may take and how much it may leave unread. */
export function createListener(handle: RequestListener, bounds: ClientBounds): Listener {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: bounds.headersMs,
    requestTimeout: bounds.requestMs,
    keepAliveTimeout: bounds.idleMs,
    connectionsCheckingInterval: Math.min(1_000, bounds.headersMs),
    noDelay: true,
    // Node's own answers have neither a body nor our headers: the router checks the Host header itself.
    requireHostHeader: false,
  })
  const connections = new Connections(bounds, handle)
  server.maxConnections = bounds.maxConnections + REFUSED_AT_ONCE
  // Bytes bound them. By default Node drops those above a thousand in silence: the client's could displace the gateway's.
  server.maxHeadersCount = 0
  server.on('connection', (socket) => connections.add(socket))
  server.on('drop', () => connections.cuts.refused++)
  server.on('request', connections.take)
  // What a client expects beyond "100-continue" may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', connections.take)
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else connections.of(socket)?.endWith(PROBLEM_BY_CODE[error.code ?? ''] ?? UNREADABLE)
  })
  server.once('close', () => connections.close())
  return { server, connections }
}

/** Listens, and resolves with the bound address. Rejects with the system's error. */
export function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      // For example no more file descriptors: open connections are still served.
      server.on('error', (error) => console.error(`sluicegate: a connection could not be taken: ${error.message}`))
      resolve(server.address() as AddressInfo)
    })
  })
}

const LENGTH_UNCLEAR = new Problem(
  400,
  'REQUEST_INVALID',
  'the length of the body is not clear: send one Content-Length, a whole number, or Transfer-Encoding: chunked, and not both',
)
const UNREADABLE = new Problem(400, 'REQUEST_INVALID', 'this is not an HTTP/1.1 request')
const PROBLEM_BY_CODE: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: new Problem(
    431,
    'HEADERS_TOO_LARGE',
    `the request line and headers must be at most ${MAX_HEADER_BYTES} bytes together`,
  ),
  HPE_INVALID_URL: new Problem(400, 'REQUEST_INVALID', 'the address has characters that must be percent-encoded'),
  HPE_UNEXPECTED_CONTENT_LENGTH: LENGTH_UNCLEAR,
  HPE_INVALID_CONTENT_LENGTH: LENGTH_UNCLEAR,
  HPE_INVALID_TRANSFER_ENCODING: LENGTH_UNCLEAR,
  ERR_HTTP_REQUEST_TIMEOUT: new Problem(408, 'REQUEST_TIMEOUT', 'the request did not arrive in time'),
}
