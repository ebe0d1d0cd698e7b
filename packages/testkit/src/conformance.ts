import { blocks } from './conformance/blocks.js'
import { budget } from './conformance/budget.js'
import { ALGORITHMS, fixturesOf, type MakeLimiter } from './conformance/fixture.js'
import { keys } from './conformance/keys.js'
import { misuse } from './conformance/misuse.js'
import { table } from './conformance/table.js'
import { time } from './conformance/time.js'
import { updates } from './conformance/updates.js'
import { verbs } from './conformance/verbs.js'
import { watching } from './conformance/watching.js'

/**
 * The one suite that every store has to pass: registers its tests with `node:test`, for each algorithm that it holds.
 *
 * What it settles beyond the docstrings: a blocked key shows its tokens as they are and is denied; `resetAfterMs` counts its block;
 * after a step back of the clock a key that owes nothing may be held, for the step at most; a newcomer denied for want of
 * room shows nothing remaining, and waits until a key near it may be forgotten.
 */
export function conformance(store: string, make: MakeLimiter, algorithms = ALGORITHMS): void {
  const fixture = fixturesOf(make)
  for (const [algorithm, policyOf] of algorithms) {
    const name = `${store}, ${algorithm}`
    for (const part of [verbs, blocks, budget, time, updates, misuse, keys, table, watching]) part(name, fixture, policyOf)
  }
}
