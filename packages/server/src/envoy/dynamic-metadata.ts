import { UNITS } from 'sluicegate-config/envoy/rule.js'
import type { Descriptor, LimitRequest } from './limit-request.js'

type Metadata = Readonly<Record<string, unknown>>

/** The dynamic metadata of a response: the request, and the metadata of the limits that it has passed, merged. */
export function dynamicMetadata({ domain, descriptors, hitsAddend }: LimitRequest, passed: readonly (Metadata | undefined)[]): Metadata {
  const merged: Record<string, unknown> = {}
  for (const metadata of passed) if (metadata !== undefined) merge(merged, metadata)
  return {
    domain,
    descriptors: descriptors.map(descriptorMetadata),
    ...(hitsAddend !== 0 && { hitsAddend }),
    ...(Object.keys(merged).length > 0 && { metadata: merged }),
  }
}

function descriptorMetadata({ entries, limit, hitsAddend }: Descriptor): Metadata {
  return {
    entries: entries.map(({ key, value }) => `${key}=${value}`),
    ...(limit && { limit: `requests_per_unit:${limit.requestsPerUnit} unit:${unitName(limit.unit)}` }),
    ...(hitsAddend !== undefined && { hitsAddend }),
  }
}

function unitName(number: number): string {
  const [name = 'UNKNOWN'] = Object.entries(UNITS).find(([, unit]) => unit.number === number) ?? []
  return name.toUpperCase()
}

/** The first value of a name stays; mappings are merged. */
function merge(target: Record<string, unknown>, source: Metadata): void {
  for (const [name, value] of Object.entries(source)) {
    const present = Object.hasOwn(target, name) ? target[name] : undefined
    if (present === undefined) define(target, name, isMapping(value) ? structuredClone(value) : value)
    else if (isMapping(present) && isMapping(value)) merge(present, value)
  }
}

/** Names come from files, and one of them may be `__proto__`. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
