import type { KeyDisplay } from '../config/config.js'
import type { Engine, Gate, HotKey } from '../engine.js'
import { describePolicy } from '../policy-text.js'
import { keyDisplay } from './key-display.js'
import type { Flow, History, PolicySample, RankedKey, Sample } from './sample.js'

/** Samples that a page opened now is shown of the past: two minutes. */
export const HISTORY_LENGTH = 120
const RANKED_KEYS = 10

/** Turns the engine's counters into what happened since the last sample. */
export class Sampler {
  readonly #engine: Engine
  readonly #keys: 'masked' | 'shown'
  readonly #display: (key: string) => string
  readonly #past: Sample[] = []
  #lastMs = performance.now()
  #last: Sample | undefined

  constructor(engine: Engine, keys: KeyDisplay) {
    this.#engine = engine
    this.#keys = keys === 'shown' ? 'shown' : 'masked'
    this.#display = keyDisplay(keys)
  }

  /** What happened since the call before. */
  sample(): Sample {
    const nowMs = performance.now()
    // Two calls within a millisecond would make a rate out of noise.
    const seconds = Math.max(1, nowMs - this.#lastMs) / 1000
    const policies = Array.from(this.#engine.gates, (gate, i) => this.#policy(gate, this.#last?.policies[i], seconds))
    const sample = { atS: Date.now() / 1000, keys: this.#keys, policies }
    this.#lastMs = nowMs
    this.#last = sample
    this.#past.push(sample)
    if (this.#past.length > HISTORY_LENGTH) this.#past.shift()
    return sample
  }

  /** The past samples' rates. */
  history(): History {
    const rates = (i: number, flow: 'allowed' | 'denied'): number[] => this.#past.map(({ policies }) => policies[i]?.[flow].perSecond ?? 0)
    return {
      atS: this.#past.map(({ atS }) => atS),
      policies: Array.from(this.#engine.gates, ({ name }, i) => ({ name, allowed: rates(i, 'allowed'), denied: rates(i, 'denied') })),
    }
  }

  #policy(gate: Gate, before: PolicySample | undefined, seconds: number): PolicySample {
    const { demand, denials } = gate.hotKeys(RANKED_KEYS)
    const flow = (outcome: 'allowed' | 'denied' | 'impossible'): Flow => {
      const total = gate.counts[outcome]
      return { total, perSecond: (total - (before?.[outcome].total ?? 0)) / seconds }
    }
    return {
      name: gate.name,
      description: describePolicy(gate.policy),
      allowed: flow('allowed'),
      denied: flow('denied'),
      impossible: flow('impossible'),
      keysTracked: gate.stats().keys,
      demand: this.#ranked(demand),
      denials: this.#ranked(denials),
    }
  }

  #ranked(keys: readonly HotKey[]): RankedKey[] {
    return keys.map(({ key, count }) => ({ key: this.#display(key), count }))
  }
}
