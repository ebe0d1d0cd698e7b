import type { PolicyReading, RateLimitReading } from './rate-limit-reading.js'
import { type BareItem, type StructuredItem, structuredDictionary, structuredList } from './structured-field.js'

/**
 * `RateLimit` and `RateLimit-Policy` of the drafts 6 to 11, the former as a list of policies or as the dictionary of draft 7. Undefined when
 * neither says anything.
 */
export function readDraftFields(rateLimit: string | undefined, policy: string | undefined): RateLimitReading | undefined {
  const quotas = (policy === undefined ? undefined : structuredList(policy))?.flatMap(quotaIn) ?? []
  const dictionary = rateLimit === undefined ? undefined : dictionaryIn(rateLimit)
  if (dictionary !== undefined) return { ...dictionary, ...(quotas.length > 0 && { policies: quotas }) }
  const limits = (rateLimit === undefined ? undefined : structuredList(rateLimit))?.flatMap(limitIn) ?? []
  const policies = joined(quotas, limits)
  if (policies.length === 0) return undefined
  const binding = limits.length === 0 ? undefined : policies.filter(hasRemaining).reduce((most, each) => (binds(each, most) ? each : most))
  return { ...(binding && numbersIn(binding)), policies }
}

/** An item of `RateLimit-Policy`: named from draft 8 on, before that a number. */
function quotaIn({ value, parameters }: StructuredItem): PolicyReading[] {
  if (typeof value !== 'number' && typeof value !== 'string') return []
  const isNumber = typeof value === 'number'
  const limit = isNumber ? count(value) : count(parameters.get('q'))
  if (limit === undefined) return []
  const windowS = count(parameters.get('w'))
  const unit = parameters.get('qu')
  return [
    {
      ...(!isNumber && { name: value }),
      limit,
      ...(windowS !== undefined && { windowMs: windowS * 1000 }),
      ...(typeof unit === 'string' && { unit }),
      ...partitionKeyIn(parameters),
    },
  ]
}

/** An item of `RateLimit` from draft 8 on. */
function limitIn({ value, parameters }: StructuredItem): PolicyReading[] {
  const remaining = count(parameters.get('r'))
  if (typeof value !== 'string' || remaining === undefined) return []
  const resetS = count(parameters.get('t'))
  return [{ name: value, remaining, ...(resetS !== undefined && { resetAfterMs: resetS * 1000 }), ...partitionKeyIn(parameters) }]
}

function dictionaryIn(text: string): RateLimitReading | undefined {
  const fields = structuredDictionary(text)
  const limit = count(fields?.get('limit')?.value)
  const remaining = count(fields?.get('remaining')?.value)
  const resetS = count(fields?.get('reset')?.value)
  if (limit === undefined && remaining === undefined && resetS === undefined) return undefined
  return {
    ...(limit !== undefined && { limit }),
    ...(remaining !== undefined && { remaining }),
    ...(resetS !== undefined && { resetAfterMs: resetS * 1000 }),
  }
}

/** What both fields say of a policy, by its name; where the partition is told in both, by that as well. Of one name the first is the first. */
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

function partitionKeyIn(parameters: ReadonlyMap<string, BareItem>): { partitionKey?: string } {
  const key = parameters.get('pk')
  return typeof key === 'string' ? { partitionKey: key } : {}
}

/** A whole number, not below 0. */
function count(value: BareItem | undefined): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined
}
