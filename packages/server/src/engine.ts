import {
  type Clock,
  createLimiter,
  type Decision,
  type HotKeys,
  type Key,
  type Limiter,
  type LimiterStats,
  type Policy,
  StoreError,
} from 'sluicegate'
import type { PolicyConfig } from './config/config.js'
import { Latency } from './latency.js'
import { type Outcome, outcomeOf } from './outcome.js'

export { type Decision, type HotKey, type Key, type Policy, PolicyError, StoreError } from 'sluicegate'

/** What a gate has answered since the service started. */
export type Counts = Record<Outcome | 'peeks', number>

/** Options of {@link Engine} beside the policies. */
export interface EngineOptions {
  /** For tests; the library's precise clock otherwise. */
  readonly clock?: Clock
  /** How many keys the top list of each policy holds; default 0, none. */
  readonly hotKeys?: number
}

/** A named policy with its keys: the one place where decisions are made and counted, for all protocols. */
export class Gate {
  /** Never changes here, so that protocols may cache what they derive from it. */
  readonly policy: Policy
  readonly counts: Counts = { allowed: 0, denied: 0, impossible: 0, peeks: 0 }
  /** Of an all-of: denials by the name of the binding part. Empty for a single policy. */
  readonly denialsByPart: Map<string, number>
  /** Outages by the code of their error. */
  readonly errors = new Map<string, number>()
  readonly #limiter: Limiter
  readonly #latency: Latency

  constructor(policy: Policy, limiter: Limiter, latency: Latency) {
    this.policy = policy
    this.denialsByPart = new Map(policy.policies?.map(({ name }) => [name, 0]))
    this.#limiter = limiter
    this.#latency = latency
  }

  get name(): string {
    return this.policy.name
  }

  /**
   * Takes `cost` tokens of `key` if they are available; of an all-of `key` may be one key for each part.
   *
   * @throws {PolicyError} `KEY_INVALID` or `COST_INVALID`: the caller's mistake, counted nowhere.
   * @throws {StoreError} when no decision could be made: an outage, counted as such.
   */
  take(key: Key, cost: number): Decision {
    const startMs = performance.now()
    try {
      const decision = this.#limiter.take(key, cost)
      this.#latency.observe((performance.now() - startMs) / 1000)
      const outcome = outcomeOf(decision)
      this.counts[outcome]++
      if (outcome === 'denied') this.#countPart(decision.policy)
      return decision
    } catch (error) {
      throw this.#counted(error)
    }
  }

  /** What {@link Gate.take} would answer now; changes nothing. Throws as it does. */
  peek(key: Key, cost: number): Decision {
    try {
      const decision = this.#limiter.peek(key, cost)
      this.counts.peeks++
      return decision
    } catch (error) {
      throw this.#counted(error)
    }
  }

  /** The parts of an all-of have a table each; `keys` is their mean. */
  stats(): LimiterStats {
    const stats = this.#limiter.stats()
    return { ...stats, keys: Math.ceil(stats.keys / Math.max(1, this.denialsByPart.size)) }
  }

  /** The `n` keys with the highest demand, and the `n` with the most denials. */
  hotKeys(n: number): HotKeys {
    return this.#limiter.hotKeys(n)
  }

  close(): void {
    this.#limiter.close()
  }

  #countPart(name: string): void {
    const denials = this.denialsByPart.get(name)
    if (denials !== undefined) this.denialsByPart.set(name, denials + 1)
  }

  #counted(error: unknown): unknown {
    if (error instanceof StoreError) this.errors.set(error.code, (this.errors.get(error.code) ?? 0) + 1)
    return error
  }
}

/** All policies by name. Protocols translate to and from it and decide nothing themselves. */
export class Engine {
  /** Of all takes together. */
  readonly latency = new Latency()
  readonly #gates: ReadonlyMap<string, Gate>

  /** @throws {PolicyError} when there is no room for a policy or its options are invalid. */
  constructor(policies: readonly PolicyConfig[], { clock, hotKeys = 0 }: EngineOptions = {}) {
    this.#gates = new Map(
      policies.map(({ policy, maxKeys, growTo, onFull }) => {
        const limiter = createLimiter(policy, {
          onFull,
          hotKeys,
          ...(maxKeys && { maxKeys }),
          ...(growTo && { growTo }),
          ...(clock && { clock }),
        })
        return [policy.name, new Gate(policy, limiter, this.latency)]
      }),
    )
  }

  /** The gate of that name. Looked up in a map, so that only configured names are found. */
  gate(name: string): Gate | undefined {
    return this.#gates.get(name)
  }

  /** In the order of the configuration. */
  get gates(): IterableIterator<Gate> {
    return this.#gates.values()
  }

  close(): void {
    for (const gate of this.#gates.values()) gate.close()
  }
}
