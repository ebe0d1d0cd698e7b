import type { ThrottleConfig } from './config.js'
import type { Section } from './section.js'

/** The most keys of a table in memory, as for policies. */
const MAX_KEYS_LIMIT = 100_000_000

/** The section `throttle`: room for the keys of `CL.THROTTLE`. */
export function readThrottle(section: Section): ThrottleConfig {
  const maxKeys = section.integer('max-keys', 1, MAX_KEYS_LIMIT)
  const growTo = section.integer('grow-to', maxKeys ?? 1, MAX_KEYS_LIMIT)
  section.done()
  return { maxKeys, growTo }
}
