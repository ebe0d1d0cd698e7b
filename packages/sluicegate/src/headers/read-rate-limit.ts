import { type HeaderSource, headerOf, lowerCased } from './header.js'
import { httpDateMs, readAgeMs, readCount, readLeast, readMs, readWaitMs } from './header-values.js'
import { type BareItem, ByteSequence, type StructuredItem, structuredDictionary, structuredList } from './structured-field.js'

/** What a server announces about one policy. */
export interface PolicyReading {
  /** Its name; drafts 6 and 7 have none. */
  readonly name?: string
  /** Tokens in a window. */
  readonly limit?: number
  readonly windowMs?: number
  /** The unit of tokens, such as `requests`. */
  readonly unit?: string
  readonly remaining?: number
  readonly resetAfterMs?: number
  /** In base64, as it was sent. */
  readonly partitionKey?: string
}

/** What a response announces about limits. What is missing or malformed is undefined. */
export interface RateLimitReading {
  /**
   * Of the binding policy: the one with the least remaining, of equals the one with the longest reset. Of separate resources, as LLM
   * services have them: one that is exhausted, else `requests`.
   */
  readonly limit?: number
  readonly remaining?: number
  /** Milliseconds until more is available. */
  readonly resetAfterMs?: number
  /**
   * `Retry-After`: milliseconds until the same request may be sent again; for a response from a cache less its age. It precedes the others.
   */
  readonly retryAfterMs?: number
  /** If several policies, or their windows, are announced. */
  readonly policies?: readonly PolicyReading[]
}

type Numbers = Pick<RateLimitReading, 'limit' | 'remaining' | 'resetAfterMs'>

const FAMILIES = ['ratelimit-', 'x-ratelimit-', 'x-rate-limit-']

/** LLM services limit several resources at once: where their headers have the name of each. */
const RESOURCES: readonly (readonly [name: string, field: (what: string) => string])[] = [
  ...['requests', 'tokens'].map((name) => [name, (what: string) => `x-ratelimit-${what}-${name}`] as const),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(
    (name) => [name, (what: string) => `anthropic-ratelimit-${name}-${what}`] as const,
  ),
]

const WINDOWS_MS = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000, month: 30 * 86_400_000 }

/** Where the name of a header has the window as well: `x-ratelimit-remaining-tokens-minute`; of requests also without their name. */
const WINDOWED = Object.entries(WINDOWS_MS).flatMap(([window, windowMs]) =>
  [
    ['requests', `requests-${window}`],
    ['requests', `req-${window}`],
    ['requests', window],
    ['tokens', `tokens-${window}`],
  ].map(([resource, suffix]) => ({ name: `${resource}-${window}`, prefix: 'x-ratelimit-', suffix, windowMs })),
)

/**
 * Reads the limits that a response announces, in any version: the drafts 6 to 11, `X-RateLimit-*` and its spellings, with resets and
 * `Retry-After` as seconds, durations, moments or dates. If several fields announce what remains, the least counts. Malformed
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
  const delayMs = readMs(read('retry-after-ms')) ?? readMs(read('x-ms-retry-after-ms')) ?? readWaitMs(read('retry-after'), nowMs)
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
  const readings = RESOURCES.flatMap(([name, field]): PolicyReading[] => {
    const found = numbersOf(read(field('limit')), read(field('remaining')), read(field('reset')), nowMs)
    return Object.keys(found).length > 0 ? [{ name, ...found }] : []
  })
  for (const { name, prefix, suffix, windowMs } of WINDOWED) {
    const remaining = read(`${prefix}remaining-${suffix}`)
    if (remaining === undefined) continue
    const found = numbersOf(read(`${prefix}limit-${suffix}`), remaining, read(`${prefix}reset-${suffix}`), nowMs)
    if (found.remaining !== undefined) readings.push({ name, windowMs, ...found })
  }
  return readings
}

/**
 * Of the exhausted resources the one with the longest reset; else requests: whether a request fits the remaining tokens is for the caller
 * to compare.
 */
function bindingResource(resources: readonly PolicyReading[]): Numbers {
  const spent = resources.filter(({ remaining }) => remaining === 0).sort((a, b) => (b.resetAfterMs ?? 0) - (a.resetAfterMs ?? 0))
  const requests = resources.filter(({ name = '' }) => name.startsWith('requests')).sort((a, b) => (a.remaining ?? 0) - (b.remaining ?? 0))
  const { name, windowMs, ...numbers } = spent[0] ?? requests[0] ?? {}
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
  const resetAfterMs = readWaitMs(resetText, nowMs)
  return {
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(resetAfterMs !== undefined && { resetAfterMs }),
  }
}

/**
 * Reads `RateLimit` and `RateLimit-Policy` of the drafts 6 to 11; `RateLimit` may be a list of policies, or the dictionary of draft 7.
 * Undefined if neither has anything.
 */
function readDraftFields(rateLimit: string | undefined, policy: string | undefined): RateLimitReading | undefined {
  const quotas = itemsIn(policy, quotaIn)
  const dictionary = rateLimit === undefined ? undefined : dictionaryIn(rateLimit)
  if (dictionary !== undefined) return { ...dictionary, ...(quotas.length > 0 && { policies: quotas }) }
  const limits = itemsIn(rateLimit, limitIn)
  const policies = joined(quotas, limits)
  if (policies.length === 0) return undefined
  const binding = limits.length === 0 ? undefined : policies.filter(hasRemaining).reduce((most, each) => (binds(each, most) ? each : most))
  return { ...(binding && numbersIn(binding)), policies }
}

/** An item of `RateLimit-Policy`: named from draft 8 on, before that a number. Undefined if it is malformed. */
function quotaIn({ value, parameters }: StructuredItem): PolicyReading | undefined {
  const isNumber = typeof value === 'number'
  if (!isNumber && typeof value !== 'string') return undefined
  const limit = isNumber ? value : parameters.get('q')
  const windowS = parameters.get('w')
  const unit = parameters.get('qu')
  const partitionKey = parameters.get('pk')
  if (!isCount(limit) || (parameters.has('w') && !(isCount(windowS) && windowS > 0))) return undefined
  if ((parameters.has('qu') && typeof unit !== 'string') || !isPartition(parameters)) return undefined
  return {
    ...(!isNumber && { name: value }),
    limit,
    ...(isCount(windowS) && { windowMs: windowS * 1000 }),
    ...(typeof unit === 'string' && { unit }),
    ...(partitionKey instanceof ByteSequence && { partitionKey: partitionKey.base64 }),
  }
}

/** An item of `RateLimit` from draft 8 on. Undefined if it is malformed. */
function limitIn({ value, parameters }: StructuredItem): PolicyReading | undefined {
  const remaining = parameters.get('r')
  const resetS = parameters.get('t')
  const partitionKey = parameters.get('pk')
  if (typeof value !== 'string' || !isCount(remaining) || (parameters.has('t') && !isCount(resetS)) || !isPartition(parameters)) {
    return undefined
  }
  return {
    name: value,
    remaining,
    ...(isCount(resetS) && { resetAfterMs: resetS * 1000 }),
    ...(partitionKey instanceof ByteSequence && { partitionKey: partitionKey.base64 }),
  }
}

/** All items of a list; none if one of them is malformed, as the whole field is then ignored. Source: draft 11, sections 3, 4 and 7. */
function itemsIn(text: string | undefined, read: (item: StructuredItem) => PolicyReading | undefined): readonly PolicyReading[] {
  const items = (text === undefined ? undefined : structuredList(text))?.map(read) ?? []
  return items.every((item) => item !== undefined) ? items : []
}

function dictionaryIn(text: string): RateLimitReading | undefined {
  const fields = structuredDictionary(text)
  const [limit, remaining, resetS] = ['limit', 'remaining', 'reset'].map((name) => fields?.get(name)?.value)
  if (fields === undefined || [limit, remaining, resetS].every((value) => value === undefined)) return undefined
  // Draft 7, section 5: a malformed field is ignored as a whole.
  if (['limit', 'remaining', 'reset'].some((name) => fields.has(name) && !isCount(fields.get(name)?.value))) return undefined
  return {
    ...(isCount(limit) && { limit }),
    ...(isCount(remaining) && { remaining }),
    ...(isCount(resetS) && { resetAfterMs: resetS * 1000 }),
  }
}

/** Joins both fields by the name of a policy, and by the partition if both have it. With equal names the first belongs to the first. */
function joined(quotas: readonly PolicyReading[], limits: readonly PolicyReading[]): PolicyReading[] {
  const rest = new Set(quotas)
  const policies = limits.map((limit) => {
    const named = quotas.filter((each) => each.name === limit.name && samePartition(each, limit))
    const quota = named.find((each) => rest.has(each)) ?? named[0]
    if (quota !== undefined) rest.delete(quota)
    return { ...quota, ...limit }
  })
  return [...policies, ...rest]
}

function samePartition(a: PolicyReading, b: PolicyReading): boolean {
  return a.partitionKey === undefined || b.partitionKey === undefined || a.partitionKey === b.partitionKey
}

function hasRemaining({ remaining }: PolicyReading): boolean {
  return remaining !== undefined
}

function binds(policy: PolicyReading, than: PolicyReading): boolean {
  const [a = 0, b = 0] = [policy.remaining, than.remaining]
  return a < b || (a === b && (policy.resetAfterMs ?? 0) > (than.resetAfterMs ?? 0))
}

function numbersIn({ limit, remaining, resetAfterMs }: PolicyReading): RateLimitReading {
  return {
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(resetAfterMs !== undefined && { resetAfterMs }),
  }
}

/** Whether the partition key, if there is one, is a byte sequence. */
function isPartition(parameters: ReadonlyMap<string, BareItem>): boolean {
  return !parameters.has('pk') || parameters.get('pk') instanceof ByteSequence
}

/** An integer >= 0. */
function isCount(value: BareItem): value is number {
  return typeof value === 'number' && value >= 0
}
