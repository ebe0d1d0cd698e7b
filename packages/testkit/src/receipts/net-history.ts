import type { Oracle } from '../oracle/oracle.js'
import { oracleFor } from '../oracle/oracle-for.js'
import type { PolicySpec } from '../oracle/policy-spec.js'

/** Which policy of a key was charged. */
export type Account = 'own' | 'other'

/** A take that passed, and what it really cost, which is corrected when that is known. */
export interface NetTake {
  readonly verb: 'take'
  cost: number
  readonly atMs: number
}

export type NetEvent =
  | NetTake
  | { readonly verb: 'penalize'; readonly tokens: number; readonly atMs: number }
  | { readonly verb: 'update'; readonly spec: PolicySpec; readonly atMs: number }

/**
 * What passed of each account, net: as if each take had charged from the beginning what it was settled to, and nothing had ever come back.
 * Every take has to pass by it too. So what passes net in any interval is within the policy.
 */
export class NetHistory {
  private readonly specs: Readonly<Record<Account, PolicySpec>>
  private readonly events: Record<Account, NetEvent[]> = { own: [], other: [] }

  constructor(specs: Readonly<Record<Account, PolicySpec>>) {
    this.specs = specs
  }

  add(account: Account, event: NetEvent): void {
    this.events[account].push(event)
  }

  accountOf(take: NetTake): Account {
    return this.events.other.includes(take) ? 'other' : 'own'
  }

  /** The first take that does not pass; undefined when all do. */
  excess(oracleOf: (spec: PolicySpec) => Oracle = oracleFor): string | undefined {
    return this.excessOf('own', oracleOf) ?? this.excessOf('other', oracleOf)
  }

  private excessOf(account: Account, oracleOf: (spec: PolicySpec) => Oracle): string | undefined {
    const oracle = oracleOf(this.specs[account])
    for (const [i, event] of this.events[account].entries()) {
      const { verb, atMs } = event
      if (verb === 'update') oracle.update(event.spec, atMs)
      else if (verb === 'penalize') oracle.penalize('k', event.tokens, atMs)
      else if (event.cost > 0 && !oracle.take('k', event.cost, atMs).allowed) return `${account}, take ${i} of ${event.cost} at ${atMs}`
    }
    return undefined
  }
}
