import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { PROBLEM_MEDIA_TYPE } from 'sluicegate/http'
import { Problem } from './problem.js'
import { ALWAYS } from './reply.js'

/** How long a client may take. A slow one is cut off; it never holds up another. */
export interface Patience {
  readonly headersMs: number
  readonly requestMs: number
  /** How long an idle connection is kept; longer than a proxy's own (nginx: 60 s), so that the proxy closes first. */
  readonly idleMs: number
}

const DEFAULT_PATIENCE: Patience = { headersMs: 10_000, requestMs: 15_000, idleMs: 75_000 }

/** Room for every key that is allowed, percent-encoded. */
const MAX_HEADER_BYTES = 16_384
const MAX_CONNECTIONS = 10_000

/** An HTTP server with bounds on what a client may send and how long it may take, not listening yet. */
export function createListener(handle: RequestListener, patience: Patience = DEFAULT_PATIENCE): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: patience.headersMs,
    requestTimeout: patience.requestMs,
    keepAliveTimeout: patience.idleMs,
    connectionsCheckingInterval: Math.min(1_000, patience.headersMs),
    noDelay: true,
    // Node's own answers have neither a body nor our headers: the router asks for the host itself.
    requireHostHeader: false,
  })
  server.maxConnections = MAX_CONNECTIONS
  // Bytes bound them. By default Node drops those above a thousand in silence: the client's own could crowd out the gateway's.
  server.maxHeadersCount = 0
  server.on('request', handle)
  // What a client expects beyond "100-continue" may be ignored (RFC 9110, section 10.1.1).
  server.on('checkExpectation', handle)
  server.on('clientError', answerUnreadable)
  return server
}

/** Listens, and resolves with the address that came of it. Rejects with the system's error. */
export function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      // For example no more file descriptors: those who are connected are served on.
      server.on('error', (error) => console.error(`sluicegate: a connection could not be taken: ${error.message}`))
      resolve(server.address() as AddressInfo)
    })
  })
}

const PROBLEM_BY_CODE: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: new Problem(
    431,
    'HEADERS_TOO_LARGE',
    `the request line and headers must be at most ${MAX_HEADER_BYTES} bytes together`,
  ),
  HPE_INVALID_URL: new Problem(400, 'REQUEST_INVALID', 'the address has characters that must be percent-encoded'),
  ERR_HTTP_REQUEST_TIMEOUT: new Problem(408, 'REQUEST_TIMEOUT', 'the request did not arrive in time'),
}
const UNREADABLE = new Problem(400, 'REQUEST_INVALID', 'this is not an HTTP/1.1 request')

/** What Node's parser refused has no response object: the answer is written by hand. */
function answerUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const problem = PROBLEM_BY_CODE[error.code ?? ''] ?? UNREADABLE
  const body = problem.toJson()
  const { title } = JSON.parse(body) as { title: string }
  const headers = [
    ...ALWAYS,
    ['Connection', 'close'],
    ['Content-Type', PROBLEM_MEDIA_TYPE],
    ['Content-Length', String(Buffer.byteLength(body))],
  ]
  const head = [`HTTP/1.1 ${problem.status} ${title}`, ...headers.map((pair) => pair.join(': '))]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
