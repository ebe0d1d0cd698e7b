import { type ConformanceChoice, conformance, IS_LONG_RUN, shortOrLong } from 'sluicegate-testkit'
import { attachLimiter, createLimiter } from '../index.js'

const conformanceInLongRun: typeof conformance = IS_LONG_RUN ? conformance : () => undefined
/** For the ends that differ from the first in few places. */
const AGAIN: ConformanceChoice = { share: 0.005 }
/** What depends on the end of a limiter that is asked, or on what stands before it. */
const AT_ANY_END: ConformanceChoice['shared'] = ['verbs', 'blocks', 'updates', 'misuse', 'statsAndEvents', 'reserving']

conformance('memory', createLimiter, { share: shortOrLong(0.005, 0.02) })

conformanceInLongRun(
  'memory, attached',
  (policy, { hotKeys = 0, ...options }) => attachLimiter(createLimiter(policy, options).handle(), { hotKeys }),
  {
    ...AGAIN,
    algorithms: ['token bucket', 'gcra'],
    shared: [...AT_ANY_END, 'budget', 'time', 'keys', 'table'],
  },
)

// The timers of a clock that a handle took fire a moment after it was moved: here those who wait have the clock itself.
conformanceInLongRun(
  'memory, attached with its clock',
  (policy, { hotKeys = 0, maxWaiting = 10_000, clock, ...options }) =>
    attachLimiter(createLimiter(policy, { ...options, clock }).handle(), { hotKeys, maxWaiting, clock }),
  { ...AGAIN, shared: [...AT_ANY_END, 'waiting'], own: false },
)

conformanceInLongRun(
  'memory, in layers',
  (policy, options) =>
    createLimiter(policy, { ...options, allow: [], deny: ['a key of no test'], policyFor: () => undefined, policies: [] }),
  { ...AGAIN, shared: [...AT_ANY_END, 'waiting'], own: false },
)
