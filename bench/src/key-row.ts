import type { Contender } from './job.js'

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

/** The last answer lives here, so that no compiler can leave it out: every decision is really made and really allocated. */
export const sink: { last: unknown } = { last: undefined }

/** Takes `count` decisions over the keys, going on where the last call ended; returns how many passed. */
export type Walk = (takes: number) => number | Promise<number>

export function walkOf(contender: Contender, row: KeyRow): Walk {
  return contender.awaited ? awaitedWalk(contender, row) : directWalk(contender, row)
}

function directWalk({ take, passed }: Contender, { at }: KeyRow): Walk {
  let position = 0
  return (takes) => {
    let allowed = 0
    const end = position + takes
    for (let i = position; i < end; i++) {
      const answer = take(at(i))
      sink.last = answer
      if (passed(answer)) allowed++
    }
    position = end & 0x3fffffff
    return allowed
  }
}

function awaitedWalk({ take, passed }: Contender, { at }: KeyRow): Walk {
  let position = 0
  return async (takes) => {
    let allowed = 0
    const end = position + takes
    for (let i = position; i < end; i++) {
      try {
        const answer = await take(at(i))
        sink.last = answer
        if (passed(answer)) allowed++
      } catch (denial) {
        sink.last = denial
      }
    }
    position = end & 0x3fffffff
    return allowed
  }
}

/** The same loop without takes: what is subtracted for a net figure. */
export function idleWalk({ at }: KeyRow): Walk {
  let position = 0
  return (takes) => {
    const end = position + takes
    for (let i = position; i < end; i++) sink.last = at(i)
    position = end & 0x3fffffff
    return 0
  }
}

/** Runs `takes` in one loop. Answers the nanoseconds it took and how many passed. */
export async function inOneLoop(walk: Walk, takes: number): Promise<{ ns: number; allowed: number }> {
  const from = performance.now()
  const passed = walk(takes)
  const allowed = typeof passed === 'number' ? passed : await passed
  return { ns: (performance.now() - from) * 1e6, allowed }
}

/** Runs `turns` turns of the event loop with `takesPerTurn` in each. */
export function inTurns(walk: Walk, turns: number, takesPerTurn: number): Promise<{ ns: number; allowed: number }> {
  return new Promise((resolve, reject) => {
    let allowed = 0
    let left = turns
    const from = performance.now()
    const next = (passed: number): void => {
      allowed += passed
      if (--left > 0) setImmediate(turn)
      else resolve({ ns: (performance.now() - from) * 1e6, allowed })
    }
    const turn = (): void => {
      const passed = walk(takesPerTurn)
      if (typeof passed === 'number') next(passed)
      else passed.then(next, reject)
    }
    setImmediate(turn)
  })
}
