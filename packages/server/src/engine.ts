import {
  type Clock,
  createLimiter,
  type Decision,
  type HotKeys,
  type Limiter,
  type LimiterStats,
  type Policy,
  StoreError,
} from 'sluicegate'
import type { PolicyConfig } from './config/config.js'
import { Latency } from './latency.js'
import { type Outcome, outcomeOf } from './outcome.js'

export { type Decision, type HotKey, type Policy, PolicyError, StoreError } from 'sluicegate'

/** What a gate has answered since the service started. */
export type Counts = Record<Outcome | 'peeks', number>

/** What {@link Engine} takes beside the policies. */
export interface EngineOptions {
  /** For tests; the library's precise clock otherwise. */
  readonly clock?: Clock
  /** How many keys the top list of each policy holds; default 0, none. */
  readonly hotKeys?: number
}

/** A named policy with its keys: the one place where decisions are made and counted, whatever protocol asked. */
export class Gate {
  readonly name: string
  readonly counts: Counts = { allowed: 0, denied: 0, impossible: 0, peeks: 0 }
  /** Outages by the code of their error. */
  readonly errors = new Map<string, number>()
  readonly #limiter: Limiter
  readonly #latency: Latency

  constructor(limiter: Limiter, latency: Latency) {
    this.name = limiter.policy.name
    this.#limiter = limiter
    this.#latency = latency
  }

  get policy(): Policy {
    return this.#limiter.policy
  }

  /**
   * Takes `cost` tokens of `key` if they are there.
   *
   * @throws {PolicyError} `KEY_INVALID` or `COST_INVALID`: the caller's mistake, counted nowhere.
   * @throws {StoreError} when no decision could be made: an outage, counted as such.
   */
  take(key: string, cost: number): Decision {
    const startMs = performance.now()
    try {
      const decision = this.#limiter.take(key, cost)
      this.#latency.observe((performance.now() - startMs) / 1000)
      this.counts[outcomeOf(decision)]++
      return decision
    } catch (error) {
      throw this.#counted(error)
    }
  }

  /** What {@link Gate.take} would answer now; changes nothing. Throws as it does. */
  peek(key: string, cost: number): Decision {
    try {
      const decision = this.#limiter.peek(key, cost)
      this.counts.peeks++
      return decision
    } catch (error) {
      throw this.#counted(error)
    }
  }

  stats(): LimiterStats {
    return this.#limiter.stats()
  }

  /** The `n` keys with the highest demand, and the `n` with the most denials. */
  hotKeys(n: number): HotKeys {
    return this.#limiter.hotKeys(n)
  }

  close(): void {
    this.#limiter.close()
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

  /** @throws {PolicyError} when a policy or its options cannot be held. */
  constructor(policies: readonly PolicyConfig[], { clock, hotKeys = 0 }: EngineOptions = {}) {
    this.#gates = new Map(
      policies.map(({ policy, maxKeys, onFull }) => {
        const limiter = createLimiter(policy, { maxKeys, onFull, hotKeys, ...(clock && { clock }) })
        return [policy.name, new Gate(limiter, this.latency)]
      }),
    )
  }

  /** The gate of that name; a map's answer, so that no name finds what nobody configured. */
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
