import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { Random } from 'sluicegate-testkit'

/** How a client leaves, in the middle of whatever it was doing. */
const DEPARTURES: readonly ((socket: Socket) => void)[] = [
  (socket) => socket.destroy(),
  (socket) => socket.resetAndDestroy(),
  (socket) => socket.end(),
]
/** A client that has closed its side waits this long for the other one. */
const LONGEST_END_MS = 100

/**
 * One client that sends a part of `bytes`, cut anywhere, in pieces of any size and with rests between them; it reads or does not, and leaves at any moment
 * in one of the ways in which connections end. Resolves when its socket is closed.
 */
export async function stormClient(random: Random, port: number, bytes: Buffer): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.on('error', () => undefined)
  if (random.chance(0.7)) socket.resume()
  const end = random.chance(0.6) ? bytes.length : random.integer(0, bytes.length)
  for (let at = 0; at < end && !socket.destroyed; ) {
    const next = Math.min(end, at + (random.chance(0.5) ? end : random.magnitude(1, 2_000)))
    socket.write(bytes.subarray(at, next))
    at = next
    await rest(random)
  }
  await rest(random)
  random.pick(DEPARTURES)(socket)
  const late = setTimeout(() => socket.destroy(), LONGEST_END_MS)
  await closed
  clearTimeout(late)
}

async function rest(random: Random): Promise<void> {
  const kind = random.integer(0, 9)
  if (kind < 5) return
  if (kind < 9) return nextTurn()
  await sleep(random.magnitude(1, 20))
}
