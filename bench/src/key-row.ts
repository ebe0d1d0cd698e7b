/** The keys of a measurement, asked for in a fixed random order. */
export interface KeyRow {
  /** Each key once, for filling up beforehand. */
  readonly keys: readonly string[]
  /** The key to ask for at any whole number `position`. */
  at(position: number): string
}

const ORDER_LENGTH = 1 << 20
const FRESH_KEY_BYTES = 12

/** `count` keys made beforehand. Their strings remember the hash that a Map needs, once it was computed. */
export function madeKeys(count: number): KeyRow {
  const keys = keysUpTo(count)
  const order = keyIndices(count)
  const mask = order.length - 1
  return { keys, at: (position) => keys[order[position & mask] as number] as string }
}

/** `count` keys that are cut out of a buffer at each asking, as off a socket: strings without a cached hash. */
export function freshKeys(count: number): KeyRow {
  const keys = keysUpTo(count).map((key) => key.padEnd(FRESH_KEY_BYTES))
  const bytes = Buffer.from(keys.join(''), 'latin1')
  const order = keyIndices(count)
  const mask = order.length - 1
  const at = (position: number): string => {
    const from = (order[position & mask] as number) * FRESH_KEY_BYTES
    return bytes.toString('latin1', from, from + FRESH_KEY_BYTES)
  }
  return { keys, at }
}

function keysUpTo(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `user-${index}`)
}

/** A power of two of indices below `count`, at random, the same in every process. */
export function keyIndices(count: number): Uint32Array {
  const order = new Uint32Array(count === 1 ? 1 : ORDER_LENGTH)
  let random = 0x9e3779b9
  for (let i = 0; i < order.length; i++) {
    random ^= random << 13
    random ^= random >>> 17
    random ^= random << 5
    order[i] = Math.floor(((random >>> 0) / 2 ** 32) * count)
  }
  return order
}
