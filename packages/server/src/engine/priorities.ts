/** Classes of requests of a policy, which are denied one after another when it runs short. */
export interface Priorities {
  /** The part of the budget, 0 to below 1, that a class leaves to the classes above it, by name. */
  readonly reserved: ReadonlyMap<string, number>
  /** The class of requests that name none, or an unknown one. */
  readonly default: string
  /** The highest class that a request may name, where its token does not say another. */
  readonly max: string
}

/** The class that a request names. */
export interface AskedPriority {
  readonly name: string | undefined
  /** The highest class that the caller's token allows; undefined: that of the policy. */
  cap(): string | undefined
}

/** Tokens that a request of this class must leave, of a budget of `burst`. */
export function floorOf({ reserved, default: usual, max }: Priorities, asked: AskedPriority | undefined, burst: number): number {
  const shareOf = (name: string): number => reserved.get(name) ?? 0
  const wanted = asked?.name !== undefined && reserved.has(asked.name) ? asked.name : usual
  const cap = asked?.cap()
  const most = cap !== undefined && reserved.has(cap) ? cap : max
  return Math.ceil(Math.max(shareOf(wanted), shareOf(most)) * burst)
}
