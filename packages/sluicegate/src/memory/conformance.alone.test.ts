import { type ConformanceChoice, conformance, IS_LONG_RUN } from 'sluicegate-testkit'
import { attachLimiter, createLimiter } from '../index.js'

/** For the ends that differ from the first in few places: in a short run fewer takes and seeds, of one algorithm of each kind. */
const AGAIN: ConformanceChoice = IS_LONG_RUN ? { share: 0.05 } : { share: 0.01, algorithms: ['gcra', 'concurrency', 'all-of'] }
/** The third and the fourth end: one state in a key, and several. */
const ONE: ConformanceChoice = IS_LONG_RUN ? {} : { algorithms: ['gcra'] }
const OF_SEVERAL: ConformanceChoice = IS_LONG_RUN ? {} : { algorithms: ['all-of'] }
const RATES = ['token bucket', 'gcra']
/** What depends on the end of a limiter that is asked, or on what stands before it. */
const AT_ANY_END: ConformanceChoice['shared'] = ['verbs', 'blocks', 'updates', 'misuse', 'statsAndEvents', 'reserving']

conformance('memory', createLimiter, IS_LONG_RUN ? { share: 0.1 } : { share: 0.01 })

conformance(
  'memory, attached',
  (policy, { hotKeys = 0, ...options }) => attachLimiter(createLimiter(policy, options).handle(), { hotKeys }),
  { ...AGAIN, algorithms: IS_LONG_RUN ? RATES : ['gcra'], shared: [...AT_ANY_END, 'budget', 'time', 'keys', 'table'] },
)

// The timers of a clock that a handle took fire a moment after it was moved: here those who wait have the clock itself.
conformance(
  'memory, attached with its clock',
  (policy, { hotKeys = 0, maxWaiters = 10_000, clock, ...options }) =>
    attachLimiter(createLimiter(policy, { ...options, clock }).handle(), { hotKeys, maxWaiters, clock }),
  { ...AGAIN, ...ONE, shared: [...AT_ANY_END, 'waiting'], own: false },
)

conformance(
  'memory, in layers',
  (policy, options) =>
    createLimiter(policy, { ...options, allow: [], deny: ['a key of no test'], policyFor: () => undefined, policies: [] }),
  { ...AGAIN, ...OF_SEVERAL, shared: IS_LONG_RUN ? [...AT_ANY_END, 'waiting'] : AT_ANY_END, own: false },
)
