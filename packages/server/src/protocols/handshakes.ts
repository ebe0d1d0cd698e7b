import type { Server, Socket } from 'node:net'
import type { SecureContextOptions, TLSSocket, TlsOptions } from 'node:tls'
import type { Certificates } from 'sluicegate-config/tls.js'
import type { Guard } from './guard.js'

/** Options of a server with encryption: TLS 1.2 or newer, with certificates of clients where an authority of theirs is configured. */
export function tlsOptions(tls: Certificates, handshakeTimeout: number): TlsOptions {
  const client = tls.clientCa === undefined ? {} : { requestCert: true, rejectUnauthorized: true }
  return { ...secureContext(tls), ...client, handshakeTimeout }
}

/** The part of {@link tlsOptions} that can change while a server listens. */
export function secureContext({ cert, key, clientCa }: Certificates): SecureContextOptions {
  return { cert, key, ...(clientCa !== undefined && { ca: clientCa }), minVersion: 'TLSv1.2' }
}

/** TCP connections whose handshake is not done: they have no place yet. A quarter of the places may be in handshakes; the oldest of more is closed. */
export class Handshakes {
  readonly #byPeer = new Map<string, Socket>()

  /** @param alpn the protocol without which a connection has no place after its handshake either. */
  constructor(server: Server, maxConnections: number, guard: Guard, alpn?: string) {
    const most = Math.ceil(maxConnections / 4)
    guard.on(server, 'connection', (socket: Socket) => {
      const peer = peerOf(socket)
      this.#byPeer.set(peer, socket)
      guard.once(socket, 'close', () => {
        if (this.#byPeer.get(peer) === socket) this.#byPeer.delete(peer)
      })
      const [oldest] = this.#byPeer.values()
      if (this.#byPeer.size > most) oldest?.destroy()
    })
    // A server that only encrypts leaves the connection open: after a handshake that failed, and one that did not end in its time.
    guard.on(server, 'tlsClientError', (_error: Error, socket: TLSSocket) => socket.destroy())
    // The encrypted connection is another object, of the same peer.
    guard.on(server, 'secureConnection', (socket: TLSSocket) => {
      if (alpn === undefined || socket.alpnProtocol === alpn) this.#byPeer.delete(peerOf(socket))
    })
  }

  close(): void {
    for (const socket of this.#byPeer.values()) socket.destroy()
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`
}
