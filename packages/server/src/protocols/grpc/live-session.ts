import type { Http2Session, ServerHttp2Session } from 'node:http2'
import type { Guard } from '../guard.js'

// What may be asked of a connection at any moment: Node.js throws where it has ended.

/** The address of the client; empty over a Unix socket, and of a connection that has ended. */
export function peerAddress(session: Http2Session | undefined): string {
  return session === undefined || session.destroyed ? '' : (session.socket.remoteAddress ?? '')
}

/**
 * From now on the connection is destroyed in a later turn than that in which it was asked to be. Node.js destroys one as soon as it reads GOAWAY with an
 * error, and versions such as 22.23 and 26.8 then abort the whole process for a call behind it in the same packet.
 *
 * Source: https://github.com/nodejs/node/issues/64850
 */
export function destroyLater(session: ServerHttp2Session, guard: Guard): void {
  const destroy = session.destroy.bind(session)
  session.destroy = (...reason) => {
    if (isGone(session)) return
    going.add(session)
    guard.later(() => destroy(...reason))
  }
}

/** Connections that are destroyed in a later turn. */
const going = new WeakSet<Http2Session>()

/** Whether the connection is destroyed, or about to be. */
export function isGone(session: Http2Session): boolean {
  return session.destroyed || going.has(session)
}

/** Sends a PING and calls back with its answer, or with an error. Returns whether it was sent. */
export function ping(session: ServerHttp2Session, guard: Guard, onAnswer: (error: Error | null) => void): boolean {
  return !isGone(session) && session.ping(guard.callback(session, onAnswer))
}
