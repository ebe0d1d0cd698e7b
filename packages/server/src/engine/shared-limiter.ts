import type { Decision, Key, SharedLimiter, SharedStats } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { type EngineLimiter, type LimiterMaking, NO_TABLE } from './engine-limiter.js'
import { reserveNowOf } from './reserve-now.js'

/** The library's bound on keys with a lease in one process. */
const MAX_LEASED_KEYS = 10_000_000

/** What all stores have in the configuration. */
interface StoreConfig {
  readonly mode?: 'leased' | 'exact' | undefined
  readonly outage: 'local' | 'open' | 'closed'
  readonly timeoutMs: number
}

/** Options of a limiter over a store, which is not named yet. */
export function sharedOptions({ mode, outage, timeoutMs }: StoreConfig, config: PolicyConfig, { hotKeys, isExact }: LimiterMaking) {
  const { maxKeys, priorities } = config
  return {
    outage,
    timeout: timeoutMs,
    hotKeys,
    // Leased is the default, and a policy that cannot be leased runs exact then.
    // A lease says nothing about what is left at the store, which classes of requests depend on.
    ...((mode === 'exact' || priorities !== undefined || isExact) && { mode: 'exact' as const }),
    ...(maxKeys !== undefined && { maxKeys: Math.min(maxKeys, MAX_LEASED_KEYS) }),
  }
}

/** A limiter over a store, as the service uses it; it leaves `limiters` when it is closed. */
export function storedShared(limiter: SharedLimiter, limiters: Set<SharedLimiter>): EngineLimiter {
  limiters.add(limiter)
  return {
    isShared: true,
    get policy() {
      return limiter.policy
    },
    take: (key, cost) => limiter.take(key, cost),
    peek: (key, cost) => limiter.peek(key, cost),
    reserve: reserveNowOf(limiter),
    get byId() {
      return limiter.byId
    },
    refund: (key, tokens) => limiter.refund(key, tokens),
    penalize: (key, tokens) => limiter.penalize(key, tokens),
    block: (key, forMs) => limiter.block(key, forMs),
    reset: (key) => limiter.reset(key),
    update: (next) => limiter.update(next),
    stats: () => ({ ...NO_TABLE, keys: limiter.stats().leases }),
    storeStats: () => limiter.stats(),
    servers: () => limiter.shards(1).servers,
    hotKeys: (n) => limiter.hotKeys(n),
    snapshot: () => undefined,
    close: () => {
      limiters.delete(limiter)
      limiter.close()
    },
  }
}

/** A verb that changes a key without a decision. */
export type KeyChange = 'refund' | 'penalize' | 'block' | 'reset'

/** The policy that decided. */
interface Decider {
  readonly name: string
}

/** One of the takes that pass together or not at all; see `TakePart`. */
interface FollowedPart {
  readonly policy: Decider
  readonly key: Key
  readonly cost: number
}

/** Sees what was decided, after it was decided. It cannot change an answer, and must not throw. */
export interface Follower {
  taken(served: Decider, key: Key, cost: number, decision: Decision): void
  /** A take of several policies, all or nothing, with the decision of each. `passes` as in `TakeAllOptions`. */
  takenAll(
    parts: readonly FollowedPart[],
    decisions: readonly Decision[],
    options: { readonly passes?: (decisions: readonly Decision[]) => boolean },
  ): void
  /** `amount` is tokens, or the milliseconds of a block; 0 of a reset. */
  changed(served: Decider, change: KeyChange, key: Key, amount: number): void
}

/** Other processes of the same service: what clients hold may be in any of them. Ids begin with the slot of the process that made them. */
export interface Peers {
  /** Of this process, from 0 to 255. */
  readonly slot: number
  /** Calls a method of the process in a slot; undefined when there is none. */
  call<Value>(slot: number, verb: HeldVerb, id: string, costs?: readonly number[]): Promise<Value | undefined>
}

export type HeldVerb = 'release' | 'heartbeat' | 'parts' | 'settle' | 'cancel'

const HEX_DIGITS = 2

/** The id with the slot as its first byte. */
export function idOfSlot(id: string, slot: number): string {
  return slot.toString(16).padStart(HEX_DIGITS, '0') + id.slice(HEX_DIGITS)
}

/** The slot of another process that made this id; undefined when it is this one's own, or no id of the service. */
export function otherSlotOf(id: string, { slot }: Peers): number | undefined {
  const made = /^[0-9a-f]{2}/.test(id) ? Number.parseInt(id.slice(0, HEX_DIGITS), 16) : slot
  return made === slot ? undefined : made
}

/** What a limiter did whose budget has its home in another store. */
export type RegionFigures = NonNullable<SharedStats['region']>

const COUNTS = ['homeCalls', 'homeFailures', 'renewals', 'renewedTokens', 'accountedTokens'] as const

/**
 * Several limiters or processes of one region together; what is no count is that of the last. Undefined without any. The library does so for
 * tiers; a service that has its keys in memory would load all of `sluicegate/redis` for it.
 */
export function sumOfRegion(all: readonly (RegionFigures | undefined)[]): RegionFigures | undefined {
  const regions = all.filter((each) => each !== undefined)
  const last = regions.at(-1)
  if (last === undefined) return undefined
  const sums = Object.fromEntries(COUNTS.map((count) => [count, regions.reduce((sum, each) => sum + each[count], 0)]))
  return { ...last, ...sums, isHomeOut: regions.some(({ isHomeOut }) => isHomeOut) }
}

/** The part of an engine that knows of a home. */
interface Regional {
  readonly storage: { readonly isHomeReachable?: boolean | undefined }
  readonly policies: Iterable<{ region(): RegionFigures | undefined }>
}

/** A line for people while the home cannot be reached; undefined otherwise. */
export function homeNote({ storage, policies }: Regional): string | undefined {
  const regions = Array.from(policies).flatMap((served) => served.region() ?? [])
  const out = storage.isHomeReachable === false ? regions[0] : regions.find(({ isHomeOut }) => isHomeOut)
  return out && `the home of the budgets is out: region ${out.region} goes on with its share`
}
