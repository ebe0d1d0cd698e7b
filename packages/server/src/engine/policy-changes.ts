import { isDeepStrictEqual } from 'node:util'
import { PolicyError } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { canBecome } from './can-become.js'
import type { EngineLimiter } from './engine-limiter.js'
import type { ServedPolicy } from './served-policy.js'
import type { PreparedTiers } from './tiered-limiter.js'

/** Each policy has its own table, and metrics have series for each. */
export const MAX_POLICIES = 10_000
/** Calls to a store that are under way when its limiter is replaced have this time to be answered. */
const LAST_CALLS_MS = 5_000

/** The names of policies by what happened to them. */
export interface PolicyChanges {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  /** With other numbers: what was spent stays spent. */
  readonly updated: readonly string[]
  /** With another algorithm, other parts or another table: in memory keys bring along what they have spent when they are next used. */
  readonly restarted: readonly string[]
}

/** Changes that can be put in force: one of the three is called, once. */
export interface PreparedChanges {
  /** Puts them in force, and does not fail. */
  (): PolicyChanges
  /**
   * The same in steps, each of which ends soon: with many policies others have their turn in between. New policies come first, removed ones go last.
   *
   * @param between called when all policies have their new numbers, and none is gone yet.
   */
  inSteps(between?: () => void): Generator<void, PolicyChanges>
  /** Closes what was made for them. */
  discard(): void
}

/** What {@link prepareChanges} works on. */
interface Preparation {
  readonly configs: readonly PolicyConfig[]
  /** All policies of the engine. */
  readonly served: Map<string, ServedPolicy>
  /** The names among them that may be changed and removed. */
  readonly own: Set<string>
  readonly limiter: (config: PolicyConfig) => EngineLimiter
  readonly add: (config: PolicyConfig, limiter: EngineLimiter) => ServedPolicy
  readonly nowMs: () => number
  /** The service has ended meanwhile. */
  readonly isClosed: () => boolean
}

/** Makes all that may fail, and returns a function that does the rest. See `engine.preparing`. */
export function* preparingChanges(preparation: Preparation): Generator<void, PreparedChanges> {
  const { configs, served, own, limiter, add, nowMs, isClosed } = preparation
  const byName = new Map(configs.map((config) => [config.policy.name, config]))
  const removed = [...own].filter((name) => !byName.has(name))
  if (served.size - removed.length + configs.filter(({ policy }) => !served.has(policy.name)).length > MAX_POLICIES)
    throw new PolicyError('RANGE_UNSUPPORTED', 'policies', configs.length, `must be at most ${MAX_POLICIES} in all`)
  const fresh = new Map<string, EngineLimiter>()
  const updated: string[] = []
  const tiered: PreparedTiers[] = []
  const discard = (): void => {
    for (const made of fresh.values()) made.close()
    for (const made of tiered) made.discard()
  }
  try {
    for (const [name, config] of byName) {
      yield
      if (isClosed()) throw new RangeError('the service has ended')
      const before = served.get(name)
      if (before !== undefined && !own.has(name)) throw new PolicyError('NAME_INVALID', 'name', name, 'must be given to one policy only')
      if (before === undefined || !keepsTable(before.config, config) || changesMode(before, config)) fresh.set(name, limiter(config))
      else {
        const isTiered = before.config.tiers !== config.tiers
        if (isTiered || !isDeepStrictEqual(before.policy, config.policy)) updated.push(name)
        else if (!isDeepStrictEqual(before.config.priorities, config.priorities)) updated.push(name)
        else if (before.config.maxSettle !== config.maxSettle) updated.push(name)
        else if (!isDeepStrictEqual(before.config.soft, config.soft)) updated.push(name)
        if (isTiered) tiered.push(yield* before.preparingTiers(config))
      }
    }
  } catch (error) {
    discard()
    throw error
  }
  function* inSteps(between?: () => void): Generator<void, PolicyChanges> {
    const added = [...fresh.keys()].filter((name) => !served.has(name))
    const restarted = [...fresh.keys()].filter((name) => served.has(name))
    for (const [name, made] of fresh) {
      const config = byName.get(name) as PolicyConfig
      const before = served.get(name)
      if (before === undefined) served.set(name, add(config, made))
      else closeLater(before.replace(config, made, nowMs))
      own.add(name)
      yield
    }
    for (const name of updated) {
      if (isClosed()) break
      served.get(name)?.update(byName.get(name) as PolicyConfig)
      yield
    }
    for (const commit of tiered) {
      if (isClosed()) break
      commit()
      yield
    }
    between?.()
    for (const name of removed) {
      closeLater(served.get(name))
      served.delete(name)
      own.delete(name)
      yield
    }
    return { added, removed, updated, restarted }
  }
  return Object.assign(() => ended(inSteps()), { discard, inSteps })
}

/** Goes through all steps at once. */
export function ended<Result>(steps: Generator<void, Result>): Result {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}

/** Whether the keys of a policy can stay where they are. */
function keepsTable(before: PolicyConfig, after: PolicyConfig): boolean {
  const { policy: from, tiers: _before, priorities: _was, maxSettle: _most, soft: _said, ...table } = before
  const { policy: to, tiers: _after, priorities: _is, maxSettle: _next, soft: _says, ...wanted } = after
  return isDeepStrictEqual(table, wanted) && canBecome(from, to)
}

/** A store keeps the keys; with priorities it is asked for each take. */
function changesMode({ isShared, config: { priorities } }: ServedPolicy, after: PolicyConfig): boolean {
  return isShared && (priorities === undefined) !== (after.priorities === undefined)
}

function closeLater(limiter: { readonly isShared: boolean; close(): void } | undefined): void {
  if (limiter?.isShared) setTimeout(() => limiter.close(), LAST_CALLS_MS).unref()
  else limiter?.close()
}
