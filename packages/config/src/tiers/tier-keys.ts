import type { Section } from '../section.js'
import type { TierData } from './tier-data.js'

/** The option for a limit: the data files' own, or that of Envoy's files. */
export type LimitOption = 'limit' | 'requests_per_unit'

/** Reads a mapping of keys, each with the name of a tier or a mapping with a limit, to `data`. */
export function readKeys(section: Section, data: TierData, limitOption: LimitOption = 'limit'): void {
  for (const key of section.names()) {
    const { line, column } = section.placeOf(key)
    const written = section.written(key)
    const place = { line, column, path: section.path === '' ? '' : `${section.path}.${key}` }
    let reason: string | undefined
    if (typeof written === 'string')
      reason = data.add(key, { tier: written, limit: undefined, window: undefined, burst: undefined, ...place })
    else if (written !== undefined || !section.isGiven(key)) section.fault(key, 'must be the name of a tier, or a mapping with a limit')
    else {
      const own = section.section(key)
      own.require(limitOption)
      const limit = own.number(limitOption)
      const window = own.text('window', '1m')
      const burst = own.number('burst')
      own.done()
      if (limit !== undefined) reason = data.add(key, { tier: undefined, limit, window, burst, ...place })
    }
    if (reason !== undefined) section.nameFault(key, reason)
  }
}
