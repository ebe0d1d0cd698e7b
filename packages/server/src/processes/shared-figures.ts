import type { HotKey } from 'sluicegate'
import type { SampledEngine, SampledPolicy } from '../dashboard/sampler.js'
import type { Engine } from '../engine/engine.js'
import { Latency } from '../engine/outcome.js'
import { type Counts, type HoldCounts, noHolds } from '../engine/served-policy.js'
import { type RegionFigures, sumOfRegion } from '../engine/shared-limiter.js'
import type { ReloadState } from '../reload.js'

/** As many as the page may rank, and ten times as many to merge. */
const KEYS_MERGED = 100

/** Figures of one policy, or of calls with their own rate. */
interface PolicyFigures {
  readonly counts: Counts
  readonly holds: HoldCounts
  readonly parts: Record<string, number>
  /** Calls to the servers of a store. */
  readonly servers: Record<string, number>
  region: RegionFigures | undefined
  keys: number
  memoryBytes: number
  demand: HotKey[]
  denials: HotKey[]
}

/** What the page shows. */
export interface PageFigures {
  readonly policies: Record<string, PolicyFigures>
  readonly callRates: PolicyFigures
  /** Observations by bucket, as in `Latency`. */
  readonly latency: Float64Array
  readonly reloads?: ReloadState | undefined
}

/** Figures of nothing. */
export function noFigures(): PageFigures {
  return { policies: noPolicies(), callRates: noPolicy(), latency: new Latency().buckets }
}

/** The figures of an engine; lists of keys only where a page is open. */
export function pageFigures(engine: Engine, withKeys: boolean): PageFigures {
  const policies = noPolicies()
  for (const served of engine.policies) {
    policies[served.name] = figuresOf(served, withKeys, {
      holds: { ...served.holds },
      parts: Object.fromEntries(served.denialsByPart),
      servers: Object.fromEntries(served.servers().map(({ server = '', calls }) => [server, calls])),
      region: served.region(),
    })
  }
  return {
    policies,
    callRates: figuresOf(engine.callRates, withKeys, { holds: noHolds(), parts: {}, servers: {}, region: undefined }),
    latency: engine.latency.buckets.slice(),
  }
}

function figuresOf(
  deciding: SampledEngine['callRates'],
  withKeys: boolean,
  more: Pick<PolicyFigures, 'holds' | 'parts' | 'servers' | 'region'>,
): PolicyFigures {
  const { demand, denials } = withKeys ? deciding.hotKeys(KEYS_MERGED) : { demand: [], denials: [] }
  const { keys, memoryBytes } = deciding.stats()
  return { counts: { ...deciding.counts }, ...more, keys, memoryBytes, demand: [...demand], denials: [...denials] }
}

/** The sum of the figures of several processes. */
export function summed(all: readonly PageFigures[]): PageFigures {
  const sum = noFigures()
  for (const { policies, callRates, latency } of all) {
    for (const [name, figures] of Object.entries(policies)) {
      sum.policies[name] ??= noPolicy()
      addTo(sum.policies[name], figures)
    }
    addTo(sum.callRates, callRates)
    for (const [bucket, observations] of latency.entries()) sum.latency[bucket] = (sum.latency[bucket] ?? 0) + observations
  }
  return sum
}

/** What stays of a process that has ended: its keys are elsewhere or gone. */
export function withoutKeys({ policies, callRates, latency }: PageFigures): PageFigures {
  const bare = (figures: PolicyFigures): PolicyFigures => ({
    ...figures,
    holds: { ...figures.holds, open: 0, held: 0 },
    region: figures.region && { ...figures.region, isHomeOut: false },
    keys: 0,
    memoryBytes: 0,
    demand: [],
    denials: [],
  })
  const each = Object.entries(policies).map(([name, figures]) => [name, bare(figures)])
  return { policies: Object.fromEntries(each), callRates: bare(callRates), latency }
}

function addTo(sum: PolicyFigures, figures: PolicyFigures): void {
  addCounts(sum.counts, figures.counts)
  addCounts(sum.holds, figures.holds)
  addCounts(sum.parts, figures.parts)
  addCounts(sum.servers, figures.servers)
  sum.region = sumOfRegion([sum.region, figures.region])
  sum.keys += figures.keys
  sum.memoryBytes += figures.memoryBytes
  sum.demand = merged(sum.demand, figures.demand)
  sum.denials = merged(sum.denials, figures.denials)
}

function addCounts(sum: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) sum[name] = (sum[name] ?? 0) + count
}

function merged(some: readonly HotKey[], more: readonly HotKey[]): HotKey[] {
  const byKey = new Map(some.map((each) => [each.key, each]))
  for (const each of more) byKey.set(each.key, { ...each, count: each.count + (byKey.get(each.key)?.count ?? 0) })
  return [...byKey.values()].sort((a, b) => b.count - a.count).slice(0, KEYS_MERGED)
}

/** Names of policies are texts of the configuration: none is one of an object's own. */
function noPolicies(): Record<string, PolicyFigures> {
  return Object.create(null) as Record<string, PolicyFigures>
}

function noPolicy(): PolicyFigures {
  const counts = { allowed: 0, denied: 0, impossible: 0, peeks: 0 }
  return { counts, holds: noHolds(), parts: {}, servers: {}, region: undefined, keys: 0, memoryBytes: 0, demand: [], denials: [] }
}

/** In a worker: the figures of the whole service, as the primary process last gave them. */
export class SharedFigures implements SampledEngine {
  /** Whether a page of this worker is open. */
  isRead: () => boolean = () => false
  readonly #engine: () => Engine | undefined
  readonly #inMemory: boolean
  #all = noFigures()

  /** @param inMemory whether the primary process has the keys. */
  constructor(engine: () => Engine | undefined, inMemory: boolean) {
    this.#engine = engine
    this.#inMemory = inMemory
  }

  use(all: PageFigures): void {
    this.#all = all
  }

  get reloads(): ReloadState | undefined {
    return this.#all.reloads
  }

  get latency(): { readonly buckets: Float64Array } {
    return { buckets: this.#all.latency }
  }

  get callRates(): SampledEngine['callRates'] {
    return sampled(this.#all.callRates)
  }

  policy(name: string): unknown {
    return this.#engine()?.policy(name)
  }

  /** In the order of the configuration. */
  get policies(): SampledPolicy[] {
    return Array.from(this.#engine()?.policies ?? [], ({ name, policy, config }) => {
      const figures = this.#all.policies[name] ?? noPolicy()
      return {
        ...sampled(figures),
        name,
        policy,
        config,
        isShared: !this.#inMemory,
        holds: figures.holds,
        denialsByPart: new Map(Object.entries(figures.parts)),
        region: () => figures.region,
        servers: () => Object.entries(figures.servers).map(([server, calls]) => ({ server, calls })),
      }
    })
  }
}

function sampled(figures: PolicyFigures): SampledEngine['callRates'] {
  const { counts, keys, memoryBytes, demand, denials } = figures
  return {
    counts,
    stats: () => ({ keys, memoryBytes }),
    hotKeys: (n) => ({ demand: demand.slice(0, n), denials: denials.slice(0, n) }),
  }
}
