import type { Decision } from '../decision.js'
import { publishDenial } from '../diagnostics.js'
import { type HotKeys, TopLists } from '../hot-keys.js'
import type { Key } from '../limiter.js'

/** Counts and publishes the decisions that callers get, each once, wherever it was made. */
export class DecisionStats {
  admittedTokens = 0
  outageTokens = 0
  private readonly lists: TopLists

  constructor(hotKeys: number) {
    this.lists = new TopLists(hotKeys)
  }

  record<Answer extends Decision>(key: Key, cost: number, decision: Answer): Answer {
    this.lists.count(key, decision.allowed)
    if (decision.allowed) {
      this.admittedTokens += cost
      if (decision.source === 'outage') this.outageTokens += cost
    } else publishDenial(key, cost, decision)
    return decision
  }

  top(n?: number): HotKeys {
    return this.lists.top(n)
  }
}
