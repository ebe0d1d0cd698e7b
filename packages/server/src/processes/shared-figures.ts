import type { Engine, HotKey, Policy } from '../engine/engine.js'
import type { Counts } from '../engine/served-policy.js'
import type { ReloadState } from '../reload.js'

/** As many as the page may rank, and ten times as many to merge. */
const KEYS_MERGED = 100

interface PolicyFigures {
  counts: Counts
  parts: Record<string, number>
  keys: number
  demand: HotKey[]
  denials: HotKey[]
}

/** What the page shows, by policy. */
export interface PageFigures {
  readonly policies: Record<string, PolicyFigures>
  readonly reloads?: ReloadState | undefined
}

/** The figures of an engine; lists of keys only where a page is open. */
export function pageFigures(engine: Engine, withKeys: boolean): PageFigures {
  const policies = Object.create(null) as Record<string, PolicyFigures>
  for (const served of engine.policies) {
    const { demand, denials } = withKeys ? served.hotKeys(KEYS_MERGED) : { demand: [], denials: [] }
    const parts = Object.fromEntries(served.denialsByPart)
    policies[served.name] = { counts: { ...served.counts }, parts, keys: served.stats().keys, demand: [...demand], denials: [...denials] }
  }
  return { policies }
}

/** The sum of the figures of several processes. */
export function summed(all: readonly PageFigures[]): Record<string, PolicyFigures> {
  const sums = Object.create(null) as Record<string, PolicyFigures>
  for (const { policies } of all) {
    for (const [name, figures] of Object.entries(policies)) {
      const sum = sums[name]
      if (sum === undefined) sums[name] = structuredClone(figures)
      else {
        for (const outcome of Object.keys(sum.counts) as (keyof Counts)[]) sum.counts[outcome] += figures.counts[outcome]
        for (const [part, denials] of Object.entries(figures.parts)) sum.parts[part] = (sum.parts[part] ?? 0) + denials
        sum.keys += figures.keys
        sum.demand = merged(sum.demand, figures.demand)
        sum.denials = merged(sum.denials, figures.denials)
      }
    }
  }
  return sums
}

function merged(some: readonly HotKey[], more: readonly HotKey[]): HotKey[] {
  const byKey = new Map(some.map((each) => [each.key, each]))
  for (const each of more) byKey.set(each.key, { ...each, count: each.count + (byKey.get(each.key)?.count ?? 0) })
  return [...byKey.values()].sort((a, b) => b.count - a.count).slice(0, KEYS_MERGED)
}

/** A policy as the page samples it. */
export interface SampledPolicy {
  readonly name: string
  readonly policy: Policy
  readonly counts: Counts
  readonly denialsByPart: ReadonlyMap<string, number>
  stats(): { readonly keys: number }
  hotKeys(n: number): { readonly demand: readonly HotKey[]; readonly denials: readonly HotKey[] }
}

const NO_COUNTS: Counts = { allowed: 0, denied: 0, impossible: 0, peeks: 0 }

/** In a worker: the figures of the whole service, as the primary process last gave them. */
export class SharedFigures {
  /** Whether a page of this worker is open. */
  isRead: () => boolean = () => false
  readonly #engine: () => Engine | undefined
  #all: PageFigures = { policies: {} }

  constructor(engine: () => Engine | undefined) {
    this.#engine = engine
  }

  use(all: PageFigures): void {
    this.#all = all
  }

  get reloads(): ReloadState | undefined {
    return this.#all.reloads
  }

  /** In the order of the configuration. */
  get policies(): SampledPolicy[] {
    return Array.from(this.#engine()?.policies ?? [], ({ name, policy }) => {
      const { counts = NO_COUNTS, parts = {}, keys = 0, demand = [], denials = [] } = this.#all.policies[name] ?? {}
      return {
        name,
        policy,
        counts,
        denialsByPart: new Map(Object.entries(parts)),
        stats: () => ({ keys }),
        hotKeys: (n) => ({ demand: demand.slice(0, n), denials: denials.slice(0, n) }),
      }
    })
  }
}
