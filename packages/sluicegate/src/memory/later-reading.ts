import type { Ticker } from '../clock.js'
import type { Decision } from '../decision.js'

/** Takes that one call makes because its clock was read too early. */
const MOST_READINGS = 8
/** Looks at a clock until it has moved: more than a microsecond of them. */
const MOST_CLOCK_READS = 64
/** What is denied for longer no later reading mends, in this call. */
const NEAR_MS = 1

/**
 * The reading by which a take is to be asked again. It was `denied` only because its key was changed at a later reading than `nowUs`, by a
 * thread that read its clock after this one, or whose clock is a microsecond ahead: a new reading nearly always mends that, unless others
 * get ahead again. After a step back, or where tokens are booked ahead, none would for long. Undefined: it stays denied.
 *
 * @param readings how often the call has read its clock for that.
 */
export function laterReading(ticker: Ticker, nowUs: number, readings: number, denied: Decision): number | undefined {
  const isNear = denied.retryAfterMs <= NEAR_MS
  if (readings > 0 && (readings >= MOST_READINGS || !isNear)) return undefined
  for (let reads = isNear ? MOST_CLOCK_READS : 1; reads > 0; reads--) {
    const laterUs = ticker.read()
    if (laterUs > nowUs) return laterUs
  }
  return undefined
}
