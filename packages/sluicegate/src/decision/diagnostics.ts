import type { BanEvent } from '../ban-options.js'
import type { Key } from '../limiter.js'
import type { SoftLimitEvent } from '../soft-limit-options.js'
import type { Decision } from './decision.js'

/** What is published on `node:diagnostics_channel`, by the name of the channel. */
export interface ChannelMessages {
  'sluicegate:denial': { readonly policy: string; readonly key: Key; readonly cost: number; readonly decision: Decision }
  'sluicegate:soft-limit': SoftLimitEvent
  'sluicegate:ban': BanEvent
  /** Making room for `key`, a key that still owed `tokens` was forgotten. */
  'sluicegate:eviction': { readonly policy: string; readonly key: string; readonly tokens: number }
  /** A new key found no room. `allowed`: it passed on the share that is kept for such keys. */
  'sluicegate:table-full': { readonly policy: string; readonly key: string; readonly allowed: boolean }
  /** A call was given up because other threads kept it from deciding. */
  'sluicegate:contention': { readonly policy: string; readonly key: Key }
  /**
   * The circuit of a server opened after consecutive failures, or closed again. `server` is its name in the client, such as `10.0.0.7:6379`;
   * undefined when there is only one, or the client names none.
   */
  'sluicegate:outage': { readonly policy: string; readonly server: string | undefined; readonly isOut: boolean }
}

interface Channel<Event> {
  readonly hasSubscribers: boolean
  publish(event: Event): void
}

const SILENT = { hasSubscribers: false, publish: () => undefined }

const diagnostics = diagnosticsChannel()

/** The channel of that name, or one without subscribers. */
function channel<Name extends keyof ChannelMessages>(name: Name): Channel<ChannelMessages[Name]> {
  return diagnostics === undefined ? SILENT : (diagnostics.channel(name) as Channel<ChannelMessages[Name]>)
}

export const denials = channel('sluicegate:denial')
export const evictions = channel('sluicegate:eviction')
export const bans = channel('sluicegate:ban')
export const softLimits = channel('sluicegate:soft-limit')
export const tablesFull = channel('sluicegate:table-full')
export const contentions = channel('sluicegate:contention')
export const outages = channel('sluicegate:outage')

/** What is used of `node:diagnostics_channel`. Looked up at run time, not imported: the library runs where there is no `node:diagnostics_channel`, silently. */
function diagnosticsChannel(): { channel(name: string): Channel<never> } | undefined {
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
