import type { Ticker } from '../clock.js'
import type { Decision } from '../decision.js'

/** Takes per call because of an early clock reading. */
const MOST_READINGS = 8
/** Looks at a clock until it has moved: more than a microsecond of them. */
const MOST_CLOCK_READS = 64
/** A later reading in this call cannot help a take that is denied for longer. */
const NEAR_MS = 1

/**
 * The clock reading with which to repeat a take. It was `denied` only because another thread changed the key at a later reading than `nowUs`:
 * that thread read its clock later, or its clock is a microsecond ahead. A new reading nearly always solves this. After a step back of the
 * clock, or where tokens are booked ahead, it cannot. Undefined: the take stays denied.
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
