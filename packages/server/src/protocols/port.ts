import type { Server } from 'node:net'
import { Server as TlsServer } from 'node:tls'
import type { ListenAddress } from 'sluicegate-config/listen-address.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import type { Guard } from './guard.js'
import { Handshakes, secureContext } from './handshakes.js'
import { listenOn } from './listen-on.js'

/** What the server of every protocol is given. */
export interface PortOptions {
  readonly guard: Guard
  /** Undefined: without encryption. */
  readonly tls?: Certificates | undefined
  /** Receives errors of the port, such as no more file descriptors. */
  readonly onError?: ((error: Error) => void) | undefined
}

/** Where a server listens, and the connections there whose handshake is not done. */
export class Port<Listening extends Server> {
  readonly server: Listening
  readonly #scheme: string
  readonly #options: PortOptions
  readonly #handshakes: Handshakes | undefined

  /**
   * @param scheme of addresses without encryption.
   * @param alpn the protocol without which a connection has no place after its handshake either.
   */
  constructor(server: Listening, scheme: string, options: PortOptions, maxConnections: number, alpn?: string) {
    this.server = server
    this.#scheme = options.tls === undefined ? scheme : `${scheme}s`
    this.#options = options
    this.#handshakes = options.tls && new Handshakes(server, maxConnections, options.guard, alpn)
  }

  /** As {@link ProtocolServer.listen}. */
  async listen(at: ListenAddress): Promise<string> {
    const { guard, onError } = this.#options
    const where = await listenOn(
      this.server,
      at,
      guard.callback(undefined, (error) => onError?.(error)),
    )
    return 'path' in at ? where : `${this.#scheme}://${where}`
  }

  /** Other certificates, from the next handshake on. */
  certify(tls: Certificates): void {
    if (this.server instanceof TlsServer) this.server.setSecureContext(secureContext(tls))
  }

  closeHandshakes(): void {
    this.#handshakes?.close()
  }
}
