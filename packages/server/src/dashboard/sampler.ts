import type { KeyDisplay } from '../config/config.js'
import type { Counts, Engine, HotKey, ServedPolicy } from '../engine/engine.js'
import type { Outcome } from '../engine/outcome.js'
import { describePolicy } from '../policy-text.js'
import type { ReloadState } from '../reload.js'
import { keyDisplay } from './key-display.js'
import type { Flow, History, PartSample, PolicySample, RankedKey, Sample } from './sample.js'

/** Past samples that a newly opened page receives: two minutes. */
export const HISTORY_LENGTH = 120
const RANKED_KEYS = 10
/** The name of calls with their own rate. */
const THROTTLE = 'CL.THROTTLE'

type Flows = Pick<PolicySample, 'allowed' | 'denied' | 'impossible'>
type Rates = { readonly allowed: number; readonly denied: number }

/** What decides: a policy, or calls with their own rate, which have none. */
type Sampled = Pick<ServedPolicy, 'name' | 'counts' | 'hotKeys'> &
  Partial<Pick<ServedPolicy, 'policy' | 'denialsByPart'>> & { stats(): { readonly keys: number } }

/** Derives rates since the last sample from the engine's counters. */
export class Sampler {
  readonly #engine: Engine
  readonly #keys: 'masked' | 'shown'
  readonly #display: (key: string) => string
  /** Rates only: names and keys of two minutes would be a hundred times as much. */
  readonly #past: { readonly atS: number; readonly rates: ReadonlyMap<string, Rates> }[] = []
  readonly #reloads: () => ReloadState | undefined
  #lastMs = performance.now()
  #last: ReadonlyMap<string, Flows> = new Map()

  constructor(engine: Engine, keys: KeyDisplay, reloads: () => ReloadState | undefined = () => undefined) {
    this.#reloads = reloads
    this.#engine = engine
    this.#keys = keys === 'shown' ? 'shown' : 'masked'
    this.#display = keyDisplay(keys)
  }

  /** The changes since the last call of `sample` or `tick`. */
  sample(): Sample {
    this.tick()
    const policies = this.#sampled().map((served) => this.#policy(served, this.#last.get(served.name) as Flows))
    const { fault, lastSuccessMs = 0 } = this.#reloads() ?? {}
    return { atS: Date.now() / 1000, keys: this.#keys, policies, ...(fault !== undefined && { staleSinceS: lastSuccessMs / 1000 }) }
  }

  /** Records the rates for {@link Sampler.history}: the only work while no page is open. */
  tick(): void {
    const nowMs = performance.now()
    // Two calls within a millisecond would yield a meaningless rate.
    const seconds = Math.max(1, nowMs - this.#lastMs) / 1000
    const before = this.#last
    this.#last = new Map(this.#sampled().map(({ name, counts }) => [name, flows(counts, before.get(name), seconds)]))
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
      policies: this.#sampled().map(({ name }) => ({
        name,
        allowed: column(name, 'allowed'),
        denied: column(name, 'denied'),
      })),
    }
  }

  /** The policies, and calls with their own rate once there are any. */
  #sampled(): Sampled[] {
    const policies: Sampled[] = [...this.#engine.policies]
    const { callRates } = this.#engine
    const { allowed, denied, impossible } = callRates.counts
    if (allowed + denied + impossible > 0 && this.#engine.policy(THROTTLE) === undefined)
      policies.push({ name: THROTTLE, counts: callRates.counts, stats: () => callRates.stats(), hotKeys: (n) => callRates.hotKeys(n) })
    return policies
  }

  #policy(served: Sampled, { allowed, denied, impossible }: Flows): PolicySample {
    const { demand, denials } = served.hotKeys(RANKED_KEYS)
    return {
      name: served.name,
      description: served.policy === undefined ? 'the rate comes with each call' : describePolicy(served.policy),
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

function partsOf({ policy, denialsByPart }: Sampled): PartSample[] {
  return (policy?.policies ?? []).map((part) => ({
    name: part.name,
    description: describePolicy(part),
    denied: denialsByPart?.get(part.name) ?? 0,
  }))
}

function flows(counts: Counts, before: Flows | undefined, seconds: number): Flows {
  const flow = (outcome: Outcome): Flow => {
    const total = counts[outcome]
    return { total, perSecond: (total - (before?.[outcome].total ?? 0)) / seconds }
  }
  return { allowed: flow('allowed'), denied: flow('denied'), impossible: flow('impossible') }
}
