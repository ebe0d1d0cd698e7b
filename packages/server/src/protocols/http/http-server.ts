import { createServer, type Server, type ServerOptions } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { Server as NetServer, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ClientBounds } from 'sluicegate-config/config.js'
import type { ListenAddress } from 'sluicegate-config/listen-address.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import { after } from '../../after.js'
import type { Guard } from '../guard.js'
import { tlsOptions } from '../handshakes.js'
import { Port, type PortOptions } from '../port.js'
import type { ProtocolServer } from '../protocol-server.js'
import { Connections } from './connections.js'
import { Problem } from './problem.js'
import type { Router } from './router.js'

/** Room for every key that is allowed, percent-encoded. */
const MAX_HEADER_BYTES = 16_384
/** Connections beyond the bound that are kept until they are refused with a response; more are closed without one. */
const REFUSED_AT_ONCE = 64

/** Where requests of an {@link HttpServer} are answered, and what it needs besides. */
export interface HttpServerOptions extends PortOptions {
  readonly router: Router
  readonly bounds: ClientBounds
  /** Whether handlers need all fields of a request, for example to follow it; default false: those that the service reads. */
  readonly keepsAllFields?: boolean
}

/** HTTP/1.1, with bounds on what a client may send, how long it may take and how much it may leave unread. */
export class HttpServer implements ProtocolServer {
  readonly connections: Connections
  readonly #port: Port<Server>
  readonly #guard: Guard

  constructor(given: HttpServerOptions) {
    const { router, bounds, guard, tls, keepsAllFields = false } = given
    const options: ServerOptions = {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: bounds.headersMs,
      requestTimeout: bounds.requestMs,
      keepAliveTimeout: bounds.idleMs,
      connectionsCheckingInterval: Math.min(1_000, bounds.headersMs),
      noDelay: true,
      // Node's own answers have neither a body nor our headers: the router checks the Host header itself.
      requireHostHeader: false,
    }
    const connections = new Connections(bounds, guard, router, keepsAllFields)
    const server =
      tls === undefined
        ? createServer(options)
        : createTlsServer({ ...options, ...tlsOptions(tls, bounds.headersMs), ALPNProtocols: ['http/1.1'] })
    server.maxConnections = bounds.maxConnections + REFUSED_AT_ONCE
    // Bytes bound them. By default Node drops those above a thousand in silence: the client's could displace the gateway's.
    server.maxHeadersCount = 0
    guard.on(server, tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => connections.add(socket))
    guard.on(server, 'drop', () => connections.cuts.refused++)
    guard.on(server, 'request', connections.take)
    // What a client expects beyond "100-continue" may be ignored (RFC 9110, section 10.1.1).
    guard.on(server, 'checkExpectation', connections.take)
    guard.on(server, 'clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
      const connection = connections.of(socket)
      // Without a connection it is the error of a handshake.
      if (connection === undefined || error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
      else connection.endWith(PROBLEM_BY_CODE[error.code ?? ''] ?? UNREADABLE)
    })
    guard.once(server, 'close', () => connections.close())
    this.connections = connections
    this.#port = new Port(server, 'http', given, bounds.maxConnections)
    this.#guard = guard
  }

  get traffic(): Connections {
    return this.connections
  }

  async listen(at: ListenAddress): Promise<string> {
    try {
      return await this.#port.listen(at)
    } catch (error) {
      this.connections.close()
      throw error
    }
  }

  certify(tls: Certificates): void {
    this.#port.certify(tls)
  }

  drain(): void {
    this.connections.leave()
  }

  async stop(finishMs: number): Promise<void> {
    // Node's own close for HTTP would close connections at once that look idle.
    const { server } = this.#port
    const closed = new Promise<void>((resolve) => this.#guard.once(server, 'close', resolve))
    await this.connections.closeInQuiet(() => NetServer.prototype.close.call(server))
    await nextTurn()
    this.connections.closeResting()
    await Promise.race([closed, after(finishMs)])
    this.#port.closeHandshakes()
    server.closeAllConnections()
    await closed
    server.close()
  }
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
