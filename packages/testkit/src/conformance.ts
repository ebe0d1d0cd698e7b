import { ALGORITHMS, type Examined } from './conformance/algorithms.js'
import { blocks } from './conformance/blocks.js'
import { budgets } from './conformance/budget.js'
import { denialEvents } from './conformance/denial-events.js'
import { fixturesOf, type MakeLimiter, type StoreTraits } from './conformance/fixture.js'
import { heldLevels, holds, holdsById, lapsedHolds, updatedHolds } from './conformance/holds.js'
import { keys } from './conformance/keys.js'
import { largeNumbers } from './conformance/large-numbers.js'
import { misuse } from './conformance/misuse.js'
import { reserving } from './conformance/reserving.js'
import { statsAndEvents } from './conformance/stats-and-events.js'
import { table } from './conformance/table.js'
import { time } from './conformance/time.js'
import { updates } from './conformance/updates.js'
import { verbs } from './conformance/verbs.js'
import { waiting } from './conformance/waiting.js'

const SHARED = {
  verbs,
  blocks,
  budget: budgets,
  time,
  updates,
  misuse,
  keys,
  table,
  denialEvents,
  statsAndEvents,
  reserving,
  waiting,
  holds,
  lapsedHolds,
  heldLevels,
  updatedHolds,
  holdsById,
}

/** Which tests to register; default all. */
export interface ConformanceChoice {
  readonly algorithms?: readonly Examined['name'][]
  readonly shared?: readonly (keyof typeof SHARED)[]
  /** Whether also those of what is true of one algorithm alone. */
  readonly own?: boolean
  /** Default `memory`. */
  readonly source?: StoreTraits['source']
  /** Default any. */
  readonly furthestBackMs?: number
  /** Default 1. */
  readonly share?: number
  /** Default false. */
  readonly updatesLazily?: boolean
}

/**
 * The one suite that every store has to pass: registers its tests with `node:test`, for each algorithm that it holds. What is true of
 * every algorithm is one shared part, run on each; what belongs to one of them is its own part.
 *
 * What it settles beyond the docstrings: a blocked key shows its tokens as they are and is denied; `resetAfterMs` counts its block;
 * after a step back of the clock a key of a rate that owes nothing may be held, for the step at most; a new key denied for want of
 * room shows nothing remaining, and waits until a key near it may be forgotten.
 */
export function conformance(store: string, make: MakeLimiter, choice: ConformanceChoice = {}): void {
  const { algorithms, source = 'memory', own: withOwn = true } = choice
  const parts = Object.keys(SHARED) as (keyof typeof SHARED)[]
  // In memory there is one process.
  const { shared = parts.filter((part) => part !== 'holdsById' || source !== 'memory') } = choice
  const { furthestBackMs = Number.POSITIVE_INFINITY, share = 1, updatesLazily = false } = choice
  const fixture = fixturesOf(make, { source, furthestBackMs, share, updatesLazily })
  for (const { name: algorithm, policyOf, own } of ALGORITHMS) {
    if (algorithms?.includes(algorithm) === false) continue
    const name = `${store}, ${algorithm}`
    for (const part of shared) SHARED[part](name, fixture, policyOf)
    if (withOwn) own(name, fixture)
  }
  if (withOwn && algorithms?.includes('all-of') !== false) largeNumbers(store, fixture)
}
