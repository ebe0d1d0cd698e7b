import { fixedWindow } from 'sluicegate'
import { type RuleLimit, UNITS, type UnitName } from 'sluicegate-config/envoy/rule.js'
import type { Priorities } from 'sluicegate-config/priorities.js'
import { clientKey } from '../access.js'
import type { AskedPriority, Engine, ServedPolicy } from '../engine/engine.js'
import { type Entry, type FoundLimit, keyOf } from './find-rule.js'
import { type LimitOverride, LimitRequestError } from './limit-request.js'

/** That of the type on the wire. */
const MAX_LIMIT = 0xffff_ffff
/** Of each unit, in memory: 12 MB when it is full. */
const MAX_KEYS = 500_000
/** No classes: takes leave what the limit of the request does not have. */
const NO_CLASSES: Priorities = { reserved: new Map(), default: '', max: '' }
const UNIT_NAMES: ReadonlyMap<number, UnitName> = new Map(Object.entries(UNITS).map(([name, { number }]) => [number, name as UnitName]))

/** The limit of a request, and what a take leaves of the policy that counts for it. */
export interface FoundOverride extends FoundLimit {
  readonly priority: AskedPriority & { readonly floor: number }
}

/**
 * Limits that requests bring along. All of one unit are counted under one policy, whose limit is the highest that a request may bring: a take leaves the rest
 * of it. So any number of limits has one table of bounded size, and none makes room for another: a new key without room is denied, and counted as a
 * refusal of the policy. As in Envoy's ratelimit service the same entries have one count in a window, whatever limit comes with them.
 */
export class Overrides {
  readonly #engine: Engine
  readonly #maxKeys: number

  constructor(engine: Engine, maxKeys = MAX_KEYS) {
    this.#engine = engine
    this.#maxKeys = maxKeys
  }

  /** @throws {LimitRequestError} for a limit that cannot be counted. */
  limit(
    domain: string,
    entries: readonly Entry[],
    { requestsPerUnit, unit }: LimitOverride,
    digest: (text: string) => string,
  ): FoundOverride {
    const name = UNIT_NAMES.get(unit)
    if (name === undefined) throw new LimitRequestError('invalid', 'the limit of a descriptor needs a unit')
    const limit: RuleLimit = {
      path: `override ${requestsPerUnit} per ${name}`,
      policy: requestsPerUnit === 0 ? undefined : this.#policy(name).name,
      unlimited: false,
      requestsPerUnit,
      unit: name,
      name: '',
      replaces: [],
      shadowMode: false,
      quotaMode: false,
      detailedMetric: false,
      cost: 1,
      chargeDenied: false,
      metadata: undefined,
    }
    const key = keyOf([domain, ...entries.flatMap((entry) => [entry.key, clientKey(entry.value)])], digest)
    return { limit, key, metric: limit.path, priority: { name: undefined, cap: () => undefined, floor: MAX_LIMIT - requestsPerUnit } }
  }

  #policy(unit: UnitName): ServedPolicy {
    const name = `override per ${unit}`
    const known = this.#engine.policy(name)
    if (known !== undefined) return known
    const policy = fixedWindow({ limit: MAX_LIMIT, window: `${UNITS[unit].windowMs}ms`, name })
    return this.#engine.add({ policy, maxKeys: this.#maxKeys, onFull: 'deny', priorities: NO_CLASSES })
  }
}
