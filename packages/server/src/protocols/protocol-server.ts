import type { ListenAddress } from 'sluicegate-config/listen-address.js'
import type { Certificates } from 'sluicegate-config/tls.js'

/** Figures of the connections of a listener. */
export interface ListenerTraffic {
  readonly open: number
  /** Requests that are being answered. */
  readonly inFlight: number
  /** Connections closed before their clients did, by the reason. */
  readonly cuts: Readonly<Record<string, number>>
}

/** One protocol over one socket: bytes from clients on one side, the engine on the other. Created with the engine, started by {@link ProtocolServer.listen}. */
export interface ProtocolServer {
  /** For the metrics of connections. */
  readonly traffic?: ListenerTraffic
  /**
   * Starts to listen. Resolves with where, as clients write it: `http://127.0.0.1:8080`, `grpc://[::1]:9001`, `unix:/run/sluicegate.sock`.
   * Rejects with the system's error, for example with `code: 'EADDRINUSE'`.
   */
  listen(at: ListenAddress): Promise<string>
  /** Other certificates than those that it was made with, from the next handshake on. */
  certify(tls: Certificates): void
  /** The service is about to stop: from now on requests are answered, and clients are asked to go elsewhere as far as the protocol can say so. */
  drain(): void
  /** Closes the port. Requests in flight have `finishMs` to finish; then connections are closed. Resolves when all of them are. Called once. */
  stop(finishMs: number): Promise<void>
}
