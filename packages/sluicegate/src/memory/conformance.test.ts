import { type ConformanceChoice, conformance } from 'sluicegate-testkit'
import { attachLimiter, createLimiter } from '../index.js'

const RATES = ['token bucket', 'gcra']
/** What depends on the end of a limiter that is asked, or on what stands before it. */
const AT_ANY_END: ConformanceChoice['shared'] = ['verbs', 'blocks', 'updates', 'misuse', 'watching', 'reserving']

conformance('memory', createLimiter)

conformance(
  'memory, attached',
  (policy, { hotKeys = 0, ...options }) => attachLimiter(createLimiter(policy, options).handle(), { hotKeys }),
  { algorithms: RATES, shared: [...AT_ANY_END, 'budget', 'time', 'keys', 'table'] },
)

// The timers of a clock that a handle took fire a moment after it was moved: here those who wait have the clock itself.
conformance(
  'memory, attached with its clock',
  (policy, { hotKeys = 0, maxWaiters = 10_000, clock, ...options }) =>
    attachLimiter(createLimiter(policy, { ...options, clock }).handle(), { hotKeys, maxWaiters, clock }),
  { shared: [...AT_ANY_END, 'waiting'], own: false },
)

conformance(
  'memory, in layers',
  (policy, options) =>
    createLimiter(policy, { ...options, allow: [], deny: ['a key of no test'], policyFor: () => undefined, policies: [] }),
  { shared: [...AT_ANY_END, 'waiting'], own: false },
)
