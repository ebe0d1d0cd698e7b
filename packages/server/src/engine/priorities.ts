import type { Priorities } from 'sluicegate-config/priorities.js'

/** The class that a request names. */
export interface AskedPriority {
  readonly name: string | undefined
  /** The highest class that the caller's token allows; undefined: that of the policy. */
  cap(): string | undefined
  /** Tokens to leave, whatever the classes say. */
  readonly floor?: number
}

/** Of a request that must leave so many tokens, as whoever sends it has read its class. */
export function leaving(floor: number): AskedPriority {
  return { name: undefined, cap: () => undefined, floor }
}

/** Tokens that a request of this class must leave, of a budget of `burst`. */
export function floorOf({ reserved, default: usual, max }: Priorities, asked: AskedPriority | undefined, burst: number): number {
  const shareOf = (name: string): number => reserved.get(name) ?? 0
  const wanted = asked?.name !== undefined && reserved.has(asked.name) ? asked.name : usual
  const cap = asked?.cap()
  const most = cap !== undefined && reserved.has(cap) ? cap : max
  return Math.ceil(Math.max(shareOf(wanted), shareOf(most)) * burst)
}
