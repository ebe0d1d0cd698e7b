import { type HeaderSource, headerOf, lowerCased } from './header-source.js'
import { httpDateMs } from './http-date.js'
import type { PolicyReading, RateLimitReading } from './rate-limit-reading.js'
import { readDraftFields } from './read-draft-fields.js'
import { toldCount, toldDelayMs, toldMs, toldResetMs } from './told-time.js'

type Numbers = Pick<RateLimitReading, 'limit' | 'remaining' | 'resetAfterMs'>

const FAMILIES = ['ratelimit-', 'x-ratelimit-', 'x-rate-limit-']

/** Services of language models limit several things at once: where they put the name of each. */
const RESOURCES: readonly (readonly [name: string, field: (what: string) => string])[] = [
  ...['requests', 'tokens'].map((name) => [name, (what: string) => `x-ratelimit-${what}-${name}`] as const),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(
    (name) => [name, (what: string) => `anthropic-ratelimit-${name}-${what}`] as const,
  ),
]

/**
 * Reads what the other side says in its headers, in any version: the drafts 6 to 11, `X-RateLimit-*` and its spellings, with resets as spans,
 * moments or dates, and `Retry-After` as seconds or a date. What is malformed, or too long, counts as not said. Never throws.
 *
 * @param headers of a response; the names of an object in any case.
 * @param options `nowMs`: Unix time, where the response has no `Date` that moments can be compared with.
 * @example
 * const { remaining, retryAfterMs = 0 } = readRateLimit((await fetch(url)).headers)
 */
export function readRateLimit(headers: HeaderSource, options: { readonly nowMs?: number } = {}): RateLimitReading {
  const { nowMs: ownNowMs = Date.now() } = options
  const source = lowerCased(headers)
  const read = (name: string): string | undefined => headerOf(source, name)
  const date = read('date')
  // A moment is one on the server's clock.
  const nowMs = (date === undefined ? undefined : httpDateMs(date, ownNowMs)) ?? ownNowMs
  const retryAfterMs = toldMs(read('retry-after-ms') ?? read('x-ms-retry-after-ms')) ?? toldDelayMs(read('retry-after'), nowMs)
  const told = readDraftFields(read('ratelimit'), read('ratelimit-policy')) ?? {}
  const numbers = hasNumbers(told) ? told : (readFamilies(read, nowMs) ?? told)
  return {
    ...told,
    ...numbers,
    ...(hasNumbers(numbers) ? {} : readResources(read, nowMs)),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  }
}

function readFamilies(read: (name: string) => string | undefined, nowMs: number): Numbers | undefined {
  for (const family of FAMILIES) {
    const resetAfter = read(`${family}reset-after`)
    const found = numbersOf(read(`${family}limit`), read(`${family}remaining`), resetAfter ?? read(`${family}reset`), nowMs)
    if (hasNumbers(found)) return found
  }
  return undefined
}

function readResources(read: (name: string) => string | undefined, nowMs: number): RateLimitReading {
  const policies: PolicyReading[] = []
  for (const [name, field] of RESOURCES) {
    const found = numbersOf(read(field('limit')), read(field('remaining')), read(field('reset')), nowMs)
    if (hasNumbers(found)) policies.push({ name, ...found })
  }
  // What is sent is a request: what it may cost in tokens is for the caller to compare.
  const { name, ...requests } = policies.find((policy) => policy.name === 'requests') ?? {}
  return policies.length === 0 ? {} : { ...requests, policies }
}

function numbersOf(
  limitText: string | undefined,
  remainingText: string | undefined,
  resetText: string | undefined,
  nowMs: number,
): Numbers {
  const limit = toldCount(limitText)
  const remaining = toldCount(remainingText)
  const resetAfterMs = toldResetMs(resetText, nowMs)
  return {
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(resetAfterMs !== undefined && { resetAfterMs }),
  }
}

function hasNumbers({ limit, remaining, resetAfterMs }: Numbers): boolean {
  return limit !== undefined || remaining !== undefined || resetAfterMs !== undefined
}
