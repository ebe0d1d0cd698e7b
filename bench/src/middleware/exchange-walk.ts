import type { RequestListener } from 'node:http'
import { keyIndices } from '../key-row.js'
import type { Walk } from '../walk.js'
import { exchange, type LightSocket } from './exchange.js'

/** Statuses from here on are denials. */
const DENIED = 400

/** Requests over these connections in a fixed random order, each after the last was answered. */
export function exchangeWalk(listener: RequestListener, connections: readonly LightSocket[]): Walk {
  const order = keyIndices(connections.length)
  const mask = order.length - 1
  let position = 0
  return async (requests) => {
    let allowed = 0
    for (let left = requests; left > 0; left--) {
      const connection = connections[order[position++ & mask] as number] as LightSocket
      if ((await exchange(listener, connection)) < DENIED) allowed++
    }
    return allowed
  }
}
