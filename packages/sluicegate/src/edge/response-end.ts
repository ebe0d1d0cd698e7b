import { onceInProcess } from '../once-in-process.js'
import type { NodeRequest, NodeResponse, NodeSocket } from './node-exchange.js'
import { type Settle, settleQuietly } from './settling.js'

/** Where a response says who is to be told of its end: for requests by the thousand a WeakMap costs more than all else here. */
const SETTLES: unique symbol = Symbol.for('sluicegate: end of a response')

interface WatchedResponse extends NodeResponse {
  [SETTLES]?: Settle[] | undefined
}

/** What is to be done when a connection is closed on which responses wait behind others. */
const queueOf = /* @__PURE__ */ onceInProcess('queued responses', () => new WeakMap<NodeSocket, Set<() => void>>())

/**
 * Settles once the response has ended. The listeners are shared by all that wait for one response, or for one connection: how many these are is
 * for clients to choose, and Node warns of more than ten.
 */
export function whenEnded(request: NodeRequest, response: WatchedResponse, settle: Settle): void {
  const known = response[SETTLES]
  if (known === undefined) watch(request, response, [settle])
  else known.push(settle)
}

function watch(request: NodeRequest, response: WatchedResponse, settles: Settle[]): void {
  const hangUp = (): void => end(undefined)
  const queue = queueBefore(request, response)
  const end = (status: number | undefined): void => {
    response[SETTLES] = undefined
    queue?.delete(hangUp)
    for (const settle of settles.splice(0)) settleQuietly(settle, status)
  }
  response[SETTLES] = settles
  queue?.add(hangUp)
  // Over HTTP/2 it is told of streams that were reset as well, with whatever status they had by then.
  response.on('finish', () => end(response.writableEnded === false ? undefined : response.statusCode))
  response.on('close', hangUp)
}

/** Of a response that waits behind others Node tells nothing when their connection is closed, and its request may be closed long before. */
function queueBefore({ socket }: NodeRequest, response: NodeResponse): Set<() => void> | undefined {
  if (response.socket !== null || socket?.on === undefined) return undefined
  const known = queueOf.get(socket)
  if (known !== undefined) return known
  const queue = new Set<() => void>()
  queueOf.set(socket, queue)
  socket.on('close', () => {
    for (const hangUp of queue) hangUp()
  })
  return queue
}
