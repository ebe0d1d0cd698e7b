import { type ConformanceChoice, conformance, shortOrLong } from 'sluicegate-testkit'
import { attachLimiter, createLimiter } from '../index.js'

/** Of the takes and seeds of the suite, for the ends that differ from the first in few places. */
const SHARE = shortOrLong(0.2, 1)
const RATES = ['token bucket', 'gcra']
/** What depends on the end of a limiter that is asked, or on what stands before it. */
const AT_ANY_END: ConformanceChoice['shared'] = ['verbs', 'blocks', 'updates', 'misuse', 'watching', 'reserving']

conformance('memory', createLimiter)

conformance(
  'memory, attached',
  (policy, { hotKeys = 0, ...options }) => attachLimiter(createLimiter(policy, options).handle(), { hotKeys }),
  { algorithms: RATES, shared: [...AT_ANY_END, 'budget', 'time', 'keys', 'table'], share: SHARE },
)

// The timers of a clock that a handle took fire a moment after it was moved: here those who wait have the clock itself.
conformance(
  'memory, attached with its clock',
  (policy, { hotKeys = 0, maxWaiters = 10_000, clock, ...options }) =>
    attachLimiter(createLimiter(policy, { ...options, clock }).handle(), { hotKeys, maxWaiters, clock }),
  { shared: [...AT_ANY_END, 'waiting'], own: false, share: SHARE },
)

conformance(
  'memory, in layers',
  (policy, options) =>
    createLimiter(policy, { ...options, allow: [], deny: ['a key of no test'], policyFor: () => undefined, policies: [] }),
  { shared: [...AT_ANY_END, 'waiting'], own: false, share: SHARE },
)
