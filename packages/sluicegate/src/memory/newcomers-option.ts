import { PolicyError } from '../errors.js'
import { type Duration, toMs } from '../policy/duration.js'
import type { SectionOptions } from './section-words.js'

const MOST_REQUESTS = 1_000_000_000
const LONGEST_MS = 366 * 86_400_000
const MEND = 'must be { limit, window }, such as { limit: 100, window: "1m" }, or false'

/**
 * The option of that name, checked.
 *
 * @throws {PolicyError} `OPTION_INVALID`, or `DURATION_INVALID` for the window.
 */
export function checkedNewcomers(newcomers: unknown): SectionOptions['newcomers'] {
  if (newcomers === undefined || newcomers === false) return newcomers
  const { limit, window, ...others } = Object(newcomers) as { readonly limit?: unknown; readonly window?: Duration }
  if (Object.keys(others).length > 0 || window === undefined) throw new PolicyError('OPTION_INVALID', 'newcomers', newcomers, MEND)
  const checked = { limit, windowMs: toMs(window, 'newcomers.window') }
  if (isNewcomers(checked)) return checked
  const range = `limit is an integer from 1 to ${MOST_REQUESTS}, window from 1ms to 366d`
  throw new PolicyError('OPTION_INVALID', 'newcomers', newcomers, `${MEND}: ${range}`)
}

/** Whether it is what {@link checkedNewcomers} gives. */
export function isNewcomers(newcomers: unknown): newcomers is SectionOptions['newcomers'] {
  if (newcomers === undefined || newcomers === false) return true
  const { limit, windowMs } = Object(newcomers) as { readonly limit?: unknown; readonly windowMs?: unknown }
  const isLimit = typeof limit === 'number' && Number.isInteger(limit) && limit >= 1 && limit <= MOST_REQUESTS
  return isLimit && typeof windowMs === 'number' && windowMs >= 1 && windowMs <= LONGEST_MS
}
