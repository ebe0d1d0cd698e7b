import type { BanEvent } from '../ban-options.js'
import type { Key } from '../limiter.js'
import type { SoftLimitEvent } from '../soft-limit-options.js'
import type { Decision } from './decision.js'

/** Published on `sluicegate:denial`. */
export interface DenialEvent {
  readonly policy: string
  readonly key: Key
  readonly cost: number
  readonly decision: Decision
}

/** Published on `sluicegate:eviction`: making room for `key`, a key that still owed `tokens` was forgotten. */
export interface EvictionEvent {
  readonly policy: string
  readonly key: string
  readonly tokens: number
}

/** Published on `sluicegate:table-full`: a new key found no room. `allowed`: it passed on the share that is kept for such keys. */
export interface TableFullEvent {
  readonly policy: string
  readonly key: string
  readonly allowed: boolean
}

/** Published on `sluicegate:contention`: a call was given up because other threads kept it from deciding. */
export interface ContentionEvent {
  readonly policy: string
  readonly key: Key
}

export interface Channel<Event> {
  readonly hasSubscribers: boolean
  publish(event: Event): void
}

/** What is used of `node:diagnostics_channel`. */
interface Diagnostics {
  channel(name: string): Channel<never>
}

const SILENT = { hasSubscribers: false, publish: () => undefined }

const diagnostics = diagnosticsChannel()

/** The channel of that name, or one without subscribers. */
export function channel<Event>(name: string): Channel<Event> {
  return diagnostics === undefined ? SILENT : (diagnostics.channel(name) as Channel<Event>)
}

export const denials = channel<DenialEvent>('sluicegate:denial')
export const evictions = channel<EvictionEvent>('sluicegate:eviction')
export const bans = channel<BanEvent>('sluicegate:ban')
export const softLimits = channel<SoftLimitEvent>('sluicegate:soft-limit')
export const tablesFull = channel<TableFullEvent>('sluicegate:table-full')
export const contentions = channel<ContentionEvent>('sluicegate:contention')

/** Looked up at run time, not imported: the library runs where there is no `node:diagnostics_channel`, silently. */
function diagnosticsChannel(): Diagnostics | undefined {
  try {
    return globalThis.process?.getBuiltinModule?.('node:diagnostics_channel')
  } catch {
    // Next.js has all functions of `process` in its edge runtime, and each throws when it is called.
    return undefined
  }
}

/** Publishes a denial. */
export function publishDenial(key: Key, cost: number, decision: Decision): void {
  if (!decision.allowed && denials.hasSubscribers) denials.publish({ policy: decision.policy, key, cost, decision })
}
