import type { Decision } from './decision.js'
import type { Key } from './limiter.js'

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

/** Published on `sluicegate:contention`: a call was given up because other threads kept it from deciding. */
export interface ContentionEvent {
  readonly policy: string
  readonly key: Key
}

/** Published on `sluicegate:outage`: a server of a store was given up after failures in a row, or answers again. */
export interface OutageEvent {
  readonly policy: string
  /** As the client calls it, such as `10.0.0.7:6379`; undefined when there is but one, or the client does not tell. */
  readonly server: string | undefined
  /** False when it is back. */
  readonly isOut: boolean
}

interface Channel<Event> {
  readonly hasSubscribers: boolean
  publish(event: Event): void
}

const SILENT = { hasSubscribers: false, publish: () => undefined }

// Looked up at run time, not imported: the library runs where there is no `node:diagnostics_channel`, silently.
const diagnostics = globalThis.process?.getBuiltinModule?.('node:diagnostics_channel')

function channel<Event>(name: string): Channel<Event> {
  return diagnostics === undefined ? SILENT : (diagnostics.channel(name) as Channel<Event>)
}

export const denials = channel<DenialEvent>('sluicegate:denial')
export const evictions = channel<EvictionEvent>('sluicegate:eviction')
export const contentions = channel<ContentionEvent>('sluicegate:contention')
export const outages = channel<OutageEvent>('sluicegate:outage')

/** Tells of a decision if it is a denial. */
export function tellDenial(key: Key, cost: number, decision: Decision): void {
  if (!decision.allowed && denials.hasSubscribers) denials.publish({ policy: decision.policy, key, cost, decision })
}
