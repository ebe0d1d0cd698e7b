/**
 * What became of hits. `shadowed`: over the limit of a rule in shadow mode. `over_quota`: over the limit of a rule in quota mode, while another
 * quota let the request pass.
 */
export type HitOutcome = 'allowed' | 'denied' | 'over_quota' | 'shadowed' | 'refunded'

export type Hits = Record<HitOutcome, number>

/** Names that come from values of requests: far more would make a metrics system slow. */
const MAX_NAMES = 2_000
/** In UTF-16 units: values have any length. */
const MAX_NAME_LENGTH = 200
/** The name that counts hits beyond the bound. */
export const OTHER = 'other'

/** Hits by the name of their rule, or of their values where a rule asks for that; the latter beyond a bound count as `other`. */
export class HitCounts {
  /** By the name of a rule: as many as the configuration has. */
  readonly #byRule = new Map<string, Hits>()
  /** By a name that requests give. */
  readonly #byRequest = new Map<string, Hits>()
  /** Requests for a domain that the configuration does not have. */
  unknownDomains = 0

  /** @param isFromRequest whether requests give the name, so that there may be any number of names. */
  count(name: string, outcome: HitOutcome, hits: number, isFromRequest: boolean): void {
    const counts = isFromRequest ? this.#ofRequests(name) : (this.#byRule.get(name) ?? added(this.#byRule, name))
    counts[outcome] += hits
  }

  /** Each name once. */
  *entries(): Generator<[name: string, hits: Readonly<Hits>]> {
    for (const [name, hits] of this.#byRule) yield [name, sum(hits, this.#byRequest.get(name))]
    for (const [name, hits] of this.#byRequest) if (!this.#byRule.has(name)) yield [name, hits]
  }

  #ofRequests(name: string): Hits {
    // A lone surrogate is a replacement character in UTF-8: two names would be one in the exposition.
    const shown = (name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name).toWellFormed()
    const counts = this.#byRequest.get(shown)
    if (counts !== undefined) return counts
    if (this.#byRequest.size < MAX_NAMES) return added(this.#byRequest, shown)
    return this.#byRequest.get(OTHER) ?? added(this.#byRequest, OTHER)
  }
}

function added(counts: Map<string, Hits>, name: string): Hits {
  const hits: Hits = { allowed: 0, denied: 0, over_quota: 0, shadowed: 0, refunded: 0 }
  counts.set(name, hits)
  return hits
}

function sum(one: Hits, other: Hits | undefined): Hits {
  if (other === undefined) return one
  return {
    allowed: one.allowed + other.allowed,
    denied: one.denied + other.denied,
    over_quota: one.over_quota + other.over_quota,
    shadowed: one.shadowed + other.shadowed,
    refunded: one.refunded + other.refunded,
  }
}
