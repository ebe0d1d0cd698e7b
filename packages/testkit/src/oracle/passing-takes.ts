import type { Oracle, OracleKey } from './oracle.js'

/** How many takes of `cost` pass one after another at a moment, until one is denied. They are made. */
export function passingTakes(oracle: Oracle, key: OracleKey, cost: number, nowMs: number): number {
  let passed = 0
  while (oracle.take(key, cost, nowMs).allowed) passed++
  return passed
}
