import type { Http2Session, ServerHttp2Session } from 'node:http2'
import type { Guard } from '../guard.js'

// What may be asked of a connection at any moment: Node.js throws where it has ended.

/** The address of the client; empty over a Unix socket, and of a connection that has ended. */
export function peerAddress(session: Http2Session | undefined): string {
  return session === undefined || session.destroyed ? '' : (session.socket.remoteAddress ?? '')
}

/** Sends a PING and calls back with its answer, or with an error. Returns whether it was sent. */
export function ping(session: ServerHttp2Session, guard: Guard, onAnswer: (error: Error | null) => void): boolean {
  return !session.destroyed && session.ping(guard.callback(session, onAnswer))
}
