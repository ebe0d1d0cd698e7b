import type { KeyDisplay } from '../config/config.js'
import type { Counts, HotKey } from '../engine/engine.js'
import type { Outcome } from '../engine/outcome.js'
import { describePolicy } from '../policy-text.js'
import type { SampledPolicy } from '../processes/shared-figures.js'
import type { ReloadState } from '../reload.js'
import { keyDisplay } from './key-display.js'
import type { Flow, History, PartSample, PolicySample, RankedKey, Sample } from './sample.js'

/** Past samples that a newly opened page receives: two minutes. */
export const HISTORY_LENGTH = 120
const RANKED_KEYS = 10

type Flows = Pick<PolicySample, 'allowed' | 'denied' | 'impossible'>
type Rates = { readonly allowed: number; readonly denied: number }

/** An engine, or the figures of several. */
interface Sampled {
  readonly policies: Iterable<SampledPolicy>
}

/** Derives rates since the last sample from the engine's counters. */
export class Sampler {
  readonly #engine: Sampled
  readonly #keys: 'masked' | 'shown'
  readonly #display: (key: string) => string
  /** Rates only: names and keys of two minutes would be a hundred times as much. */
  readonly #past: { readonly atS: number; readonly rates: ReadonlyMap<string, Rates> }[] = []
  readonly #reloads: () => ReloadState | undefined
  #lastMs = performance.now()
  #last: ReadonlyMap<string, Flows> = new Map()

  constructor(engine: Sampled, keys: KeyDisplay, reloads: () => ReloadState | undefined = () => undefined) {
    this.#reloads = reloads
    this.#engine = engine
    this.#keys = keys === 'shown' ? 'shown' : 'masked'
    this.#display = keyDisplay(keys)
  }

  /** The changes since the last call of `sample` or `tick`. */
  sample(): Sample {
    this.tick()
    const policies = Array.from(this.#engine.policies, (served) => this.#policy(served, this.#last.get(served.name) as Flows))
    const { fault, lastSuccessMs = 0 } = this.#reloads() ?? {}
    return { atS: Date.now() / 1000, keys: this.#keys, policies, ...(fault !== undefined && { staleSinceS: lastSuccessMs / 1000 }) }
  }

  /** Records the rates for {@link Sampler.history}: the only work while no page is open. */
  tick(): void {
    const nowMs = performance.now()
    // Two calls within a millisecond would yield a meaningless rate.
    const seconds = Math.max(1, nowMs - this.#lastMs) / 1000
    const before = this.#last
    this.#last = new Map(Array.from(this.#engine.policies, ({ name, counts }) => [name, flows(counts, before.get(name), seconds)]))
    this.#lastMs = nowMs
    const rates = new Map(
      Array.from(this.#last, ([name, { allowed, denied }]) => [name, { allowed: allowed.perSecond, denied: denied.perSecond }]),
    )
    this.#past.push({ atS: Date.now() / 1000, rates })
    if (this.#past.length > HISTORY_LENGTH) this.#past.shift()
  }

  /** The past samples' rates. */
  history(): History {
    const column = (name: string, flow: keyof Rates): number[] => this.#past.map(({ rates }) => rates.get(name)?.[flow] ?? 0)
    return {
      atS: this.#past.map(({ atS }) => atS),
      policies: Array.from(this.#engine.policies, ({ name }) => ({
        name,
        allowed: column(name, 'allowed'),
        denied: column(name, 'denied'),
      })),
    }
  }

  #policy(served: SampledPolicy, { allowed, denied, impossible }: Flows): PolicySample {
    const { demand, denials } = served.hotKeys(RANKED_KEYS)
    return {
      name: served.name,
      description: describePolicy(served.policy),
      allowed,
      denied,
      impossible,
      keysTracked: served.stats().keys,
      parts: partsOf(served),
      demand: this.#ranked(demand),
      denials: this.#ranked(denials),
    }
  }

  #ranked(keys: readonly HotKey[]): RankedKey[] {
    return keys.map(({ key, count }) => ({ key: this.#display(key), count }))
  }
}

function partsOf({ policy, denialsByPart }: SampledPolicy): PartSample[] {
  const { policies = [] } = policy
  return policies.map((part) => ({ name: part.name, description: describePolicy(part), denied: denialsByPart.get(part.name) ?? 0 }))
}

function flows(counts: Counts, before: Flows | undefined, seconds: number): Flows {
  const flow = (outcome: Outcome): Flow => {
    const total = counts[outcome]
    return { total, perSecond: (total - (before?.[outcome].total ?? 0)) / seconds }
  }
  return { allowed: flow('allowed'), denied: flow('denied'), impossible: flow('impossible') }
}
