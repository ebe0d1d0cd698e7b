import { PROTOCOLS, type Protocol } from './measure-rates.js'
import type { ServerEffort, ServerResults } from './server-results.js'

/** What can be measured alone, each in at most five minutes. */
export const PARTS = ['http', 'nginx', 'grpc', 'resp', 'rates-http', 'rates-grpc', 'rates-resp', 'generators', 'startup'] as const
export type ServerPart = (typeof PARTS)[number]

/** The protocol of a part that offers rates. */
export function protocolOf(part: ServerPart): Protocol | undefined {
  return PROTOCOLS.find((protocol) => part === `rates-${protocol}`)
}

type Mutable<Shape> = { -readonly [Name in keyof Shape]: Shape[Name] }

/**
 * Earlier results with the parts that a later run measured in place of their own. What the parts left out keeps its figures.
 *
 * @throws when both were measured on different machines: a page shows one.
 */
export function merged(earlier: ServerResults, later: ServerResults, parts: readonly ServerPart[]): ServerResults {
  for (const each of ['cpu', 'cores', 'os', 'node'] as const) {
    const [before, now] = [earlier.machine[each], later.machine[each]]
    if (before !== now) throw new Error(`${each} was ${before} in the results so far and is ${now}: run all parts, without --merge`)
  }
  const result = {
    ...earlier,
    effort: { ...earlier.effort } as Mutable<ServerEffort>,
    later: { ...earlier.later } as Record<string, string>,
  }
  for (const part of parts) {
    result.later[part] = later.startedAt
    const protocol = protocolOf(part)
    if (protocol === undefined) {
      const name = part as Exclude<ServerPart, `rates-${Protocol}`>
      Object.assign(result, { [name]: later[name] })
      Object.assign(result.effort, { [name]: later.effort[name] })
    } else {
      const rates = PROTOCOLS.flatMap((name) => (name === protocol ? later : result).rates.find((each) => each.protocol === name) ?? [])
      result.rates = rates
      result.effort.rates = later.effort.rates
    }
  }
  return result
}
