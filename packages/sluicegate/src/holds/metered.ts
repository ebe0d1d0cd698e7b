import { type Awaitable, chained, ignore, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import type { Reservation } from '../decision/reservation.js'
import { PolicyError } from '../errors.js'
import type { Key } from '../key.js'
import type { After } from '../time/clock.js'
import { toMs } from '../time/duration.js'
import { type AnyHold, checkedOpenRequest, type OpenOptions } from './hold.js'

export type { AnyHold } from './hold.js'

/** A cost that is known only afterwards: `'metered'`, or how to open the hold of the work. */
export type Metered = 'metered' | OpenOptions

/** What opens holds. Limiters of the user's may have none. */
export interface HoldOpener {
  open?(key: Key, options?: OpenOptions): Awaitable<AnyHold>
}

const UNSAID: OpenOptions = Object.freeze({})
/** The default of {@link OpenOptions.ttl}. */
const DEFAULT_TTL = '15s'

/** How to open a hold; undefined for a cost that is a number. */
export function meteredBy(cost: unknown): OpenOptions | undefined {
  if (cost === 'metered') return UNSAID
  return typeof cost === 'object' && cost !== null ? cost : undefined
}

/** @throws {PolicyError} as {@link checkedOpenRequest}, and `OPTION_INVALID` for a limiter that opens no holds. */
export function checkMetered(metered: OpenOptions, limiter?: HoldOpener): void {
  checkedOpenRequest(metered)
  if (limiter !== undefined) checkOpens(limiter)
}

/** A hold as what a take is elsewhere: settled with the true cost, or called off, it is closed. */
export function openOf(limiter: HoldOpener, key: Key, metered: OpenOptions): Awaitable<Reservation<When, AnyHold>> {
  checkOpens(limiter)
  return chained(limiter.open(key, metered), (decision): Reservation<When, AnyHold> => {
    const { allowed, retryAfterMs } = decision
    return {
      allowed,
      waitMs: retryAfterMs,
      decision,
      settle: (actualCost) => decision.close(actualCost),
      cancel: () => decision.close(),
    }
  })
}

/** Whether a decision is a hold. */
export function isHold(decision: Decision): decision is AnyHold {
  return typeof (decision as Partial<AnyHold>)?.add === 'function' && typeof (decision as Partial<AnyHold>).close === 'function'
}

/** Closes the hold that a decision may be. It costs what was added. */
export function closeQuietly(decision: Decision): void {
  if (!isHold(decision)) return
  try {
    ignore(decision.close())
  } catch {
    // The limiter is closed, or out of reach: the hold ends after its ttl.
  }
}

/** Keeps a hold from running out until the returned function is called: renews it each time that half of its ttl is over. */
export function keptHold(hold: AnyHold, { ttl = DEFAULT_TTL }: OpenOptions, after: After): () => void {
  const halfMs = toMs(ttl, 'ttl') / 2
  let cancel = (): void => {}
  const renewLater = (): void => {
    cancel = after(halfMs, () => {
      renewLater()
      try {
        ignore(hold.add(0))
      } catch {
        // As above.
      }
    })
  }
  renewLater()
  return () => cancel()
}

function checkOpens(limiter: HoldOpener): asserts limiter is Required<HoldOpener> {
  if (typeof limiter.open === 'function') return
  throw new PolicyError('OPTION_INVALID', 'cost', 'metered', 'needs a limiter that opens holds, such as createLimiter(policy)')
}
