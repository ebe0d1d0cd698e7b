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

/** The last stream of all: none is refused. */
const LAST_STREAM = 2 ** 31 - 1
/** How long a client may take to answer before its connection is closed all the same. */
const SEEN_MS = 1_000

const leaving = new WeakSet<Http2Session>()

/**
 * Asks the client to make its next call over another connection, and closes this one once the client has seen that. A call that was on its way is
 * answered, where a connection that is closed at once refuses it, and libraries repeat a refused call once only.
 *
 * Source: RFC 9113, section 6.8
 */
export function closeWhenSeen(session: ServerHttp2Session, guard: Guard): void {
  if (isGone(session) || session.closed || leaving.has(session)) return
  leaving.add(session)
  const close = (): void => {
    if (!isGone(session)) session.close()
  }
  session.goaway(0, LAST_STREAM)
  if (ping(session, guard, close)) guard.after(SEEN_MS, close)
  else close()
}
