import { fixedWindow } from 'sluicegate'
import { type RuleLimit, UNITS, type UnitName } from 'sluicegate-config/envoy/rule.js'
import { clientKey } from '../client-key.js'
import type { Engine } from '../engine/engine.js'
import { type Entry, type FoundLimit, keyOf } from './find-rule.js'
import { type LimitOverride, LimitRequestError } from './limit-request.js'

/** Different limits that requests may bring along at a time. Each has its own table. */
const MAX_OVERRIDES = 256
const MAX_LIMIT = 1_000_000_000
const MAX_KEYS = 20_000

/** Limits that requests bring along. The one used the longest ago makes room for a new one, with what was counted for it. */
export class Overrides {
  readonly #engine: Engine
  /** By number and unit, the last used last. */
  readonly #limits = new Map<string, RuleLimit>()

  constructor(engine: Engine) {
    this.#engine = engine
  }

  /** @throws {LimitRequestError} for a limit that cannot be counted. */
  limit(domain: string, entries: readonly Entry[], { requestsPerUnit, unit }: LimitOverride, digest: (text: string) => string): FoundLimit {
    const name = `${requestsPerUnit}/${unit}`
    const kept = this.#limits.get(name)
    const limit = kept !== undefined && this.#isServed(kept) ? kept : this.#made(requestsPerUnit, unit)
    this.#limits.delete(name)
    this.#limits.set(name, limit)
    if (this.#limits.size > MAX_OVERRIDES) this.#dropOldest()
    return { limit, key: keyOf([domain, ...entries.flatMap(({ key, value }) => [key, clientKey(value)])], digest), metric: limit.path }
  }

  #isServed({ policy }: RuleLimit): boolean {
    return policy === undefined || this.#engine.policy(policy) !== undefined
  }

  #made(requestsPerUnit: number, number: number): RuleLimit {
    const unit = (Object.keys(UNITS) as UnitName[]).find((name) => UNITS[name].number === number)
    if (unit === undefined) throw new LimitRequestError('invalid', 'the limit of a descriptor needs a unit')
    if (requestsPerUnit > MAX_LIMIT) throw new LimitRequestError('invalid', `the limit of a descriptor is at most ${MAX_LIMIT}`)
    const path = `override ${requestsPerUnit} per ${unit}`
    if (requestsPerUnit > 0 && this.#engine.policy(path) === undefined) {
      const policy = fixedWindow({ limit: requestsPerUnit, window: `${UNITS[unit].windowMs}ms`, name: path })
      this.#engine.add({ policy, maxKeys: MAX_KEYS, growTo: undefined, onFull: 'evict' })
    }
    return {
      path,
      policy: requestsPerUnit === 0 ? undefined : path,
      unlimited: false,
      requestsPerUnit,
      unit,
      name: '',
      replaces: [],
      shadowMode: false,
      quotaMode: false,
      detailedMetric: false,
      cost: 1,
      chargeDenied: false,
      metadata: undefined,
    }
  }

  #dropOldest(): void {
    const [name, { policy }] = this.#limits.entries().next().value as [string, RuleLimit]
    this.#limits.delete(name)
    if (policy !== undefined) this.#engine.remove(policy)
  }
}
