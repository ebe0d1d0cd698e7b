import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import { allsOf } from './all-of.js'
import { permits } from './concurrency.js'
import { fixedWindows } from './fixed-window.js'
import type { Fixtures, MakePolicy } from './fixture.js'
import { ratesOf } from './rate.js'
import { slidingLogs } from './sliding-log.js'
import { slidingWindows } from './sliding-window.js'

/** An algorithm as the suite examines it. */
export interface Examined {
  readonly name: string
  /** A policy of it that allows `limit` in a `window`, and no more at once. */
  readonly policyOf: MakePolicy
  /** Registers the tests of what is true of it alone. */
  readonly own: (name: string, fixture: Fixtures) => void
}

/** The algorithms that the suite examines. */
export const ALGORITHMS: readonly Examined[] = [
  { name: 'token bucket', policyOf: tokenBucket, own: ratesOf(tokenBucket) },
  { name: 'gcra', policyOf: gcra, own: ratesOf(gcra) },
  { name: 'fixed window', policyOf: fixedWindow, own: fixedWindows },
  { name: 'sliding window', policyOf: slidingWindow, own: slidingWindows },
  { name: 'sliding log', policyOf: slidingLog, own: slidingLogs },
  { name: 'concurrency', policyOf: ({ window, ...rest }) => concurrency({ ...rest, ttl: window }), own: permits },
  { name: 'all-of', policyOf: bothOf, own: allsOf },
]

/** Parts that share the name, so that it does not matter which of them speaks. */
function bothOf(options: Parameters<MakePolicy>[0]): Policy {
  return allOf([slidingWindow(options), tokenBucket(options)], options.name === undefined ? {} : { name: options.name })
}
