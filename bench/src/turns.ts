import type { Walk } from './walk.js'

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
