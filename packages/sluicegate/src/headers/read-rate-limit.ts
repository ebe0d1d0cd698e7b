import { type HeaderSource, headerOf, lowerCased } from './header-source.js'
import { readAgeMs, readCount, readDelayMs, readLeast, readMs, readResetMs } from './header-values.js'
import { httpDateMs } from './http-date.js'
import type { PolicyReading, RateLimitReading } from './rate-limit-reading.js'
import { readDraftFields } from './read-draft-fields.js'

type Numbers = Pick<RateLimitReading, 'limit' | 'remaining' | 'resetAfterMs'>

const FAMILIES = ['ratelimit-', 'x-ratelimit-', 'x-rate-limit-']

/** LLM services limit several resources at once: where their headers have the name of each. */
const RESOURCES: readonly (readonly [name: string, field: (what: string) => string])[] = [
  ...['requests', 'tokens'].map((name) => [name, (what: string) => `x-ratelimit-${what}-${name}`] as const),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(
    (name) => [name, (what: string) => `anthropic-ratelimit-${name}-${what}`] as const,
  ),
]

/**
 * Reads the limits that a response announces, in any version: the drafts 6 to 11, `X-RateLimit-*` and its spellings, with resets as
 * durations, moments or dates, and `Retry-After` as seconds or a date. If several fields announce what remains, the least counts. Malformed
 * and overlong fields are ignored. Never throws for the content of a response.
 *
 * A response from a cache, with an `Age` above 0, does not know what remains now: only its `Retry-After` counts, less the age, while that
 * is above 0.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-11, section 7.3; RFC 9111, section 5.1.
 *
 * @param headers of a response; the names of an object in any case.
 * @param options `nowMs`: Unix time, for moments in a response without `Date`.
 * @example
 * const { remaining, retryAfterMs = 0 } = readRateLimit((await fetch(url)).headers)
 */
export function readRateLimit(headers: HeaderSource, options: { readonly nowMs?: number } = {}): RateLimitReading {
  const { nowMs: ownNowMs = Date.now() } = options
  const source = lowerCased(headers)
  const read = (name: string): string | undefined => headerOf(source, name)
  const date = read('date')
  const ageMs = readAgeMs(read('age'))
  // Moments are compared with the server's clock when it made the response.
  const nowMs = (date === undefined ? undefined : httpDateMs(date, ownNowMs)) ?? ownNowMs - ageMs
  const delayMs = readMs(read('retry-after-ms') ?? read('x-ms-retry-after-ms')) ?? readDelayMs(read('retry-after'), nowMs)
  if (ageMs > 0) return delayMs === undefined || delayMs <= ageMs ? {} : { retryAfterMs: delayMs - ageMs }
  const { policies: drafted = [], ...draft } = readDraftFields(read('ratelimit'), read('ratelimit-policy')) ?? {}
  const families = FAMILIES.map((family) => {
    const reset = read(`${family}reset-after`) ?? read(`${family}reset`)
    return numbersOf(read(`${family}limit`), read(`${family}remaining`), reset, nowMs)
  })
  const resources = readResources(read, nowMs)
  const policies = [...drafted, ...resources]
  return {
    ...together([draft, ...families, bindingResource(resources)]),
    ...(policies.length > 0 && { policies }),
    ...(delayMs !== undefined && { retryAfterMs: delayMs }),
  }
}

/** The numbers with the least remaining, the first of equals, completed from those that do not contradict them. */
function together(all: readonly Numbers[]): Numbers {
  const left = ({ remaining = Number.POSITIVE_INFINITY }: Numbers): number => remaining
  const binding = all.reduce((least, each) => (left(each) < left(least) ? each : least), {})
  const others = all.filter(({ remaining }) => remaining === undefined || remaining === binding.remaining)
  return Object.assign({}, ...others.reverse(), binding)
}

function readResources(read: (name: string) => string | undefined, nowMs: number): PolicyReading[] {
  return RESOURCES.flatMap(([name, field]) => {
    const found = numbersOf(read(field('limit')), read(field('remaining')), read(field('reset')), nowMs)
    return Object.keys(found).length > 0 ? { name, ...found } : []
  })
}

/**
 * Of the exhausted resources the one with the longest reset; else requests: whether a request fits the remaining tokens is for the caller
 * to compare.
 */
function bindingResource(resources: readonly PolicyReading[]): Numbers {
  const spent = resources.filter(({ remaining }) => remaining === 0).sort((a, b) => (b.resetAfterMs ?? 0) - (a.resetAfterMs ?? 0))
  const { name, ...numbers } = spent[0] ?? resources.find((each) => each.name === 'requests') ?? {}
  return numbers
}

function numbersOf(
  limitText: string | undefined,
  remainingText: string | undefined,
  resetText: string | undefined,
  nowMs: number,
): Numbers {
  const limit = readCount(limitText)
  const remaining = readLeast(remainingText)
  const resetAfterMs = readResetMs(resetText, nowMs)
  return {
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(resetAfterMs !== undefined && { resetAfterMs }),
  }
}
