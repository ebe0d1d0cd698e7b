import type { Contender } from './contender.js'
import type { KeyRow } from './key-row.js'

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
