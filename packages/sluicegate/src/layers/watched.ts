import { defaultClock } from '../default-clock.js'
import type { LimiterVerbs } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { withQueue } from '../queue/create-queue.js'
import type { QueueOptions } from '../queue/queue-options.js'
import { checkedSoftLimits } from '../soft-limit-options.js'
import type { Clock } from '../time/clock.js'
import { checkLedger, GIVEN_ONLY, RECORDED, type WatchOptions } from '../watch-options.js'
import type { InnerLimiter } from './layer.js'
import { withPromises } from './promised.js'
import { SoftLimiter } from './soft-limiter.js'

/** The options that are read here, of a limiter in memory or over a store. */
interface WatchedOptions extends WatchOptions {
  readonly store?: unknown
  readonly clock?: Clock
  readonly queue?: QueueOptions
  readonly timeout?: unknown
}

/**
 * A limiter with its soft limits, behind its ledger. They are the outermost layers, so that they see what callers see.
 *
 * @param make makes the limiters that say which process announces, where the limiter itself keeps its state.
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function watched<Made extends LimiterVerbs>(
  limiter: Made,
  make: (policy: Policy, options: never) => LimiterVerbs,
  options: WatchedOptions,
): Made {
  const { store, clock = defaultClock(limiter.policy), timeout, onSoft, ledger } = options
  if (ledger !== undefined) checkLedger(ledger)
  const limits = checkedSoftLimits(options, limiter.policy)
  const isApart = store === undefined || (store as { readonly [GIVEN_ONLY]?: boolean })[GIVEN_ONLY] === true
  // In an outage nobody announces: what was seen is asked again.
  const shared = { ...(!isApart && { store, mode: 'exact', outage: 'closed', ...(timeout !== undefined && { timeout }) }) }
  const once = (policy: Policy): LimiterVerbs => make(policy, { ...shared, clock } as never)
  const recorded = ledger === undefined ? limiter : (ledger[RECORDED](limiter) as Made)
  const soft = limits && new SoftLimiter(recorded as unknown as InnerLimiter, { limits, onSoft, clock, make: once })
  const whole = (soft ?? recorded) as unknown as Made
  const queued = withQueue(store === undefined ? whole : withPromises(whole), clock)
  return 'overrides' in limiter ? Object.assign(queued, { overrides: limiter.overrides }) : queued
}
