import { type Awaitable, chained } from '../../awaitable.js'
import { makeLimiter } from '../../create-limiter.js'
import { holdsPermits } from '../../decision/permit.js'
import { type Settling, TAKE } from '../../decision/reservation.js'
import { takeOf } from '../../decision/settled-takes.js'
import { PolicyError, StoreError } from '../../errors.js'
import { fittedKey } from '../../keys/key-reader.js'
import { onceInProcess } from '../../once-in-process.js'
import { checkLimiter, checkOptions } from '../../options/option-checks.js'
import type { Policy } from '../../policy/policy.js'
import { checkedWindowMs } from '../../policy/policy-options.js'
import { fixedWindow } from '../../policy/single-policy.js'
import { preciseClock } from '../../time/clock.js'
import { formatMs } from '../../time/duration.js'
import { checkedPolicyName, type LimiterVerbs, type MakeLimiter, madeLimiter } from '../limiter-verbs.js'
import { BEYOND_ANY_LIMIT, CountedHits, DecidedHits, type HitCount, type Hits, type LimitFor } from './hit-counts.js'

/** Where stores count: a memory, which several limiters may share, or a limiter. */
type CountingPlace = object

/** The handle of a limiter in memory; that of `allOf` has the memory in its parts. */
interface MemoryHandle {
  readonly memory?: object
  readonly parts?: readonly { readonly memory?: object }[]
}

/** The number of stores of this thread that count in each place. */
const stores = /* @__PURE__ */ onceInProcess('counting places', () => new WeakMap<CountingPlace, number>())

/** Whether a limiter is in the memory of this process: remote ones have no snapshot. */
function isHere(limiter: LimiterVerbs): boolean {
  return 'snapshot' in limiter
}

/** Registers a store that counts by this limiter. @returns the place; undefined if other processes count there as well. */
function joinedPlace(limiter: LimiterVerbs): CountingPlace | undefined {
  if (!isHere(limiter)) return undefined
  const place = placeOf(limiter as LimiterVerbs & { handle?(): MemoryHandle })
  stores.set(place, (stores.get(place) ?? 0) + 1)
  return place
}

/** Whether a single store counts there. */
function isAlone(place: CountingPlace): boolean {
  return stores.get(place) === 1
}

/** Attached limiters share one memory, and with it their counts. */
function placeOf(limiter: LimiterVerbs & { handle?(): MemoryHandle }): CountingPlace {
  try {
    const { memory, parts } = limiter.handle?.() ?? {}
    return memory ?? parts?.[0]?.memory ?? limiter
  } catch {
    // A limiter without a handle cannot be attached elsewhere.
    return limiter
  }
}

/** Options of {@link SluicegateStore}. */
export interface SluicegateStoreOptions {
  /**
   * Makes the limiter that counts, of the policy it is given: `(policy) => createLimiter(policy, { store: redis(client) })`. express-rate-limit
   * decides. Default: a limiter in memory.
   */
  readonly create?: MakeLimiter
  /** Instead: a limiter that decides, with any policy; `limit` of express-rate-limit then has to be its burst, or a function. */
  readonly limiter?: LimiterVerbs
  /** The prefix of keys; default `rl:`, and none with a `limiter`. In a shared store each store needs one of its own. */
  readonly prefix?: string
}

/** The options of express-rate-limit that a store uses. */
export interface StoreSettings {
  readonly windowMs: number
  readonly limit: unknown
  readonly skipFailedRequests?: boolean
  readonly skipSuccessfulRequests?: boolean
}

const OPTIONS = ['create', 'limiter', 'prefix']

/**
 * A store for express-rate-limit.
 *
 * It counts, in windows of `windowMs` that are aligned to UTC, and express-rate-limit decides: all its options work. With a `limiter`, that
 * decides, and denied requests are not counted.
 *
 * @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID`
 * @example
 * app.use(rateLimit({ windowMs: 60_000, limit: 100, store: new SluicegateStore() }))
 * app.use(rateLimit({ limit: 20, store: new SluicegateStore({ limiter: createLimiter(tokenBucket({ limit: 100, window: '1m', burst: 20 })) }) }))
 */
export class SluicegateStore {
  private readonly create: MakeLimiter | undefined
  private readonly given: LimiterVerbs | undefined
  private readonly ownPrefix: string
  /** Whether the store made its limiter in memory, which then has no other user. */
  private readonly isOwn: boolean
  private hits: Hits | undefined
  /** Undefined if other processes count as well. */
  private place: CountingPlace | undefined
  /** Makes the hits, also for a reset. */
  private make: (() => Hits) | undefined
  /** The error of {@link init}. */
  private misuse: unknown

  constructor(options: SluicegateStoreOptions = {}) {
    const own = checkOptions(options, OPTIONS, '{ prefix: "login:" }')
    const { create, limiter, prefix = limiter === undefined ? DEFAULT_PREFIX : '' } = own
    if (typeof prefix !== 'string') throw new PolicyError('OPTION_INVALID', 'prefix', prefix, 'must be a string')
    if (limiter !== undefined) checkDecidingLimiter(limiter, create)
    this.create = create
    this.given = limiter
    this.ownPrefix = prefix
    this.isOwn = create === undefined && limiter === undefined
  }

  /** Whether all keys of this store are counted here alone; express-rate-limit uses it to detect double counting. */
  get localKeys(): boolean {
    if (this.hits === undefined) return this.isOwn
    return this.place !== undefined && isAlone(this.place)
  }

  /** The prefix that tells these keys from those of other stores, for the same check. */
  get prefix(): string {
    return this.hits === undefined || this.localKeys ? this.ownPrefix : `${this.hits.limiter.policy.name}:${this.ownPrefix}`
  }

  /**
   * Called by express-rate-limit, once.
   *
   * @throws {PolicyError} on options that this store does not support. express-rate-limit logs it, and each request fails with the same
   *   error.
   */
  init(settings: StoreSettings): void {
    const { given } = this
    this.start(given === undefined ? () => this.counting(settings.windowMs) : () => deciding(given, settings))
  }

  /**
   * Makes the limiter that decides for the middleware of this library, by the options of the store.
   *
   * @internal
   * @throws {PolicyError} `OPTION_INVALID` if the store has its own limiter, or belongs to another middleware.
   */
  decideBy(policy: Policy): LimiterVerbs & Pick<Settling, typeof TAKE> {
    if (this.given !== undefined) {
      throw new PolicyError('OPTION_INVALID', 'store', this, 'has a limiter: here say create: () => limiter, of the same limit and window')
    }
    this.start(() => new DecidedHits(this.made(policy)))
    const limiter = (): LimiterVerbs => this.ready().limiter
    return {
      get policy() {
        return limiter().policy
      },
      policyOf: (key) => limiter().policyOf?.(this.named(key as string)) ?? limiter().policy,
      take: (key, cost) => limiter().take(this.named(key as string), cost),
      [TAKE]: (key, cost = 1) => takeOf(limiter(), this.named(key as string), cost, preciseClock().nowMs),
      peek: (key, cost) => limiter().peek(this.named(key as string), cost),
      refund: (key, tokens) => limiter().refund(this.named(key as string), tokens),
      penalize: (key, tokens) => limiter().penalize(this.named(key as string), tokens),
      block: (key, duration) => limiter().block(this.named(key as string), duration),
      reset: (key) => limiter().reset(this.named(key as string)),
      close: () => limiter().close(),
    }
  }

  /** The count of a key; undefined for an unknown key. */
  get(key: string): Awaitable<HitCount | undefined> {
    return this.ready().seen(this.named(key))
  }

  /** Adds a hit. */
  increment(key: string): Awaitable<HitCount> {
    return this.ready().hit(this.named(key))
  }

  /** Takes back a hit, in the current window. In an outage it stays: express-rate-limit calls this after the response, where no code handles errors. */
  async decrement(key: string): Promise<void> {
    try {
      await this.ready().limiter.refund(this.named(key), 1)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
    }
  }

  /** Resets the count of a key, and lifts a block. */
  resetKey(key: string): Awaitable<void> {
    return chained(this.ready().limiter.reset(this.named(key)), nothing)
  }

  /** Resets all keys. @throws {PolicyError} `OPTION_INVALID` if the limiter may have other users. */
  async resetAll(): Promise<void> {
    const { limiter } = this.ready()
    if (!this.isOwn) {
      throw new PolicyError(
        'OPTION_INVALID',
        'resetAll',
        undefined,
        'is for a store that made its limiter itself: reset keys by resetKey()',
      )
    }
    this.hits = (this.make as () => Hits)()
    this.place = joinedPlace(this.hits.limiter)
    limiter.close()
  }

  /** Closes the limiter, unless it was given. */
  shutdown(): void {
    if (this.given === undefined) this.hits?.limiter.close()
  }

  private ready(): Hits {
    if (this.misuse !== undefined) throw this.misuse
    if (this.hits !== undefined) return this.hits
    throw new PolicyError('OPTION_INVALID', 'store', this, 'does not know its window yet: give it to rateLimit({ store }) first')
  }

  private start(make: () => Hits): void {
    try {
      if (this.hits !== undefined)
        throw new PolicyError('OPTION_INVALID', 'store', this, 'counts for another rateLimit(): make one for each')
      const hits = make()
      this.place = joinedPlace(hits.limiter)
      this.hits = hits
      this.make = make
    } catch (error) {
      this.misuse = error
      throw error
    }
  }

  private counting(windowMs: number): Hits {
    // The name of its own limiter is not visible.
    const limiter = this.made(countingPolicy(windowMs, this.isOwn ? '' : this.ownPrefix))
    return new CountedHits(limiter, isHere(limiter))
  }

  private made(policy: Policy): LimiterVerbs {
    const { create = (own) => makeLimiter(own) } = this
    return madeLimiter(create, policy)
  }

  private named(key: string): string {
    if ((typeof key === 'object' && key !== null) || typeof key === 'function' || typeof key === 'symbol') {
      throw new PolicyError('KEY_INVALID', 'key', key, 'must be a string: all other values would share one key')
    }
    // Without other users no prefix is needed, and prepending one takes half as long as counting.
    if (!this.isOwn && this.ownPrefix !== '') return fittedKey(`${this.ownPrefix}${key}`)
    const text = String(key)
    return fittedKey(text.charCodeAt(0) > 0 ? text : `\0${text}`)
  }
}

function deciding(limiter: LimiterVerbs, { limit, skipFailedRequests = false, skipSuccessfulRequests = false }: StoreSettings): Hits {
  const skips = skipFailedRequests ? 'skipFailedRequests' : 'skipSuccessfulRequests'
  if (skipFailedRequests || skipSuccessfulRequests) {
    // A denied request was not charged, but would be refunded.
    const mend = 'needs a store that counts: leave out limiter, or take counts of sluicegate/express instead'
    throw new PolicyError('OPTION_INVALID', skips, true, mend)
  }
  return new DecidedHits(limiter, comparedWith(limiter, limit))
}

/** The number that express-rate-limit compares hits with. It has to be the burst, or counts could not express both results. */
function comparedWith({ policy: { burst, name } }: LimiterVerbs, limit: unknown): LimitFor {
  // The limit of a request is not known here.
  if (typeof limit === 'function') return () => BEYOND_ANY_LIMIT - 1
  if (limit === burst) return () => burst
  throw new PolicyError('OPTION_INVALID', 'limit', limit, `must be ${burst}, which is what the policy '${name}' lets pass at once`)
}

function checkDecidingLimiter(limiter: LimiterVerbs, create: MakeLimiter | undefined): void {
  checkLimiter('limiter', limiter)
  if (create !== undefined) throw new PolicyError('OPTION_INVALID', 'create', create, 'makes a limiter: give that or limiter, and not both')
  if (holdsPermits(limiter.policy)) {
    throw new PolicyError(
      'OPTION_INVALID',
      'limiter',
      limiter,
      'holds permits, which express-rate-limit never releases: see sluicegate/express',
    )
  }
}

function nothing(): void {}

/** The default prefix of keys. */
const DEFAULT_PREFIX = 'rl:'
/** A limit that is never reached. */
const MOST_HITS = 1_000_000_000

/**
 * The policy of a limiter that only counts, for the option `create` of a store: windows of `windowMs` milliseconds. A primary of
 * `sluicegate/cluster` serves it.
 *
 * @param prefix of the store. If it is not the default it is part of the policy's name, which identifies it in a shared store.
 * @throws {PolicyError} `WINDOW_INVALID`, `NAME_INVALID`
 * @example serveLimiter(countingPolicy(60_000, 'login:'), { cluster })
 */
export function countingPolicy(windowMs: number, prefix: string = DEFAULT_PREFIX): Policy {
  const window = checkedWindowMs(windowMs, 'windowMs')
  const name = `express-rate-limit-${formatMs(window)}`
  const isCommon = prefix === DEFAULT_PREFIX || prefix === ''
  return fixedWindow({ limit: MOST_HITS, window, name: isCommon ? name : checkedPolicyName('prefix', `${name}-${prefix}`) })
}
