import type { PolicyReading, RateLimitReading } from './rate-limit-reading.js'
import { type BareItem, ByteSequence, type StructuredItem, structuredDictionary, structuredList } from './structured-field.js'

/**
 * Reads `RateLimit` and `RateLimit-Policy` of the drafts 6 to 11; `RateLimit` may be a list of policies, or the dictionary of draft 7.
 * Undefined if neither has anything.
 */
export function readDraftFields(rateLimit: string | undefined, policy: string | undefined): RateLimitReading | undefined {
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
