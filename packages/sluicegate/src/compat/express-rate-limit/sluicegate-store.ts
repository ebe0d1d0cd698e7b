import { type Awaitable, chained } from '../../awaitable.js'
import { createLimiter } from '../../create-limiter.js'
import { holdsPermits } from '../../empty-permit.js'
import { PolicyError } from '../../errors.js'
import { fittedKey } from '../../keys/fitted-key.js'
import { onceInProcess } from '../../once-in-process.js'
import { checkLimiter, checkOptions } from '../../options/option-checks.js'
import type { Policy } from '../../policy/policy.js'
import { type LimiterVerbs, type MakeLimiter, madeLimiter } from '../limiter-verbs.js'
import { countingPolicy, DEFAULT_PREFIX } from './counting-policy.js'
import { BEYOND_ANY_LIMIT, CountedHits, DecidedHits, type HitCount, type Hits, type LimitFor } from './hit-counts.js'

/** Where stores count: the memory of limiters that share one, or a limiter itself. */
export type CountingPlace = object

/** What the handle of a limiter in memory has; that of several policies has it in its parts. */
interface MemoryHandle {
  readonly memory?: object
  readonly parts?: readonly { readonly memory?: object }[]
}

/** How many stores of this thread count in each place. */
const stores = /* @__PURE__ */ onceInProcess('counting places', () => new WeakMap<CountingPlace, number>())

/** Whether a limiter is in the memory of this process: what is in a store or another process has no snapshot. */
export function isHere(limiter: LimiterVerbs): boolean {
  return 'snapshot' in limiter
}

/** A store begins to count by this limiter. @returns where, or undefined where other processes count as well. */
export function joinedPlace(limiter: LimiterVerbs): CountingPlace | undefined {
  if (!isHere(limiter)) return undefined
  const place = placeOf(limiter as LimiterVerbs & { handle?(): MemoryHandle })
  stores.set(place, (stores.get(place) ?? 0) + 1)
  return place
}

/** Whether one store alone counts there. */
export function isAlone(place: CountingPlace): boolean {
  return stores.get(place) === 1
}

/** Two limiters may be two ends of one count, as those that were attached are: what they share is the memory. */
function placeOf(limiter: LimiterVerbs & { handle?(): MemoryHandle }): CountingPlace {
  try {
    const { memory, parts } = limiter.handle?.() ?? {}
    return memory ?? parts?.[0]?.memory ?? limiter
  } catch {
    // What has no handle is attached nowhere.
    return limiter
  }
}

/** Options of {@link SluicegateStore}. */
export interface SluicegateStoreOptions {
  /**
   * Who counts where express-rate-limit decides: makes a limiter of the policy that it is given, such as
   * `(policy) => createRedisLimiter(policy, { client })`. Default: one of this process.
   */
  readonly create?: MakeLimiter
  /** Or a limiter that decides, whatever its policy; `limit` is then what that lets pass at once, or a function. */
  readonly limiter?: LimiterVerbs
  /** What keys begin with, default `rl:`, and nothing where a `limiter` is given. In a fleet give each store one of its own. */
  readonly prefix?: string
}

/** What a store looks at of express-rate-limit's options. */
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
 * It counts, in windows of `windowMs` that are aligned to UTC, and express-rate-limit decides: all its options work. Given a `limiter` it is
 * that which decides, and what it denies is not counted.
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
  /** Nobody else can ask the limiter. */
  private readonly isOwn: boolean
  private hits: Hits | undefined
  /** Undefined where other processes count as well. */
  private place: CountingPlace | undefined
  /** Makes what counts, also anew. */
  private make: (() => Hits) | undefined
  /** What was wrong when express-rate-limit told its options. */
  private misuse: unknown

  constructor(options: SluicegateStoreOptions = {}) {
    checkOptions(options, OPTIONS, '{ prefix: "login:" }')
    const { create, limiter, prefix = limiter === undefined ? DEFAULT_PREFIX : '' } = options
    if (typeof prefix !== 'string') throw new PolicyError('OPTION_INVALID', 'prefix', prefix, 'must be a string')
    if (limiter !== undefined) checkDecidingLimiter(limiter, create)
    this.create = create
    this.given = limiter
    this.ownPrefix = prefix
    this.isOwn = create === undefined && limiter === undefined
  }

  /** Whether nobody else counts the keys of this store: by it express-rate-limit knows which counts are one. */
  get localKeys(): boolean {
    if (this.hits === undefined) return this.isOwn
    return this.place !== undefined && isAlone(this.place)
  }

  /** What tells these keys from those of other stores, in the same terms. */
  get prefix(): string {
    return this.hits === undefined || this.localKeys ? this.ownPrefix : `${this.hits.limiter.policy.name}:${this.ownPrefix}`
  }

  /**
   * Called by express-rate-limit, once.
   *
   * @throws {PolicyError} on options that this store cannot honour. They are logged there, and each request fails with the same error.
   */
  init(settings: StoreSettings): void {
    const { given } = this
    this.start(given === undefined ? () => this.counting(settings.windowMs) : () => deciding(given, settings))
  }

  /**
   * For the middleware of this library, whose limiter decides under this policy, made as the options of the store say.
   *
   * @internal
   * @throws {PolicyError} `OPTION_INVALID` where the store has a limiter of its own, or another middleware.
   */
  decideBy(policy: Policy): LimiterVerbs {
    if (this.given !== undefined) {
      throw new PolicyError('OPTION_INVALID', 'store', this, 'has a limiter: here say create: () => limiter, of the same limit and window')
    }
    this.start(() => new DecidedHits(this.made(policy)))
    const asked = (): LimiterVerbs => this.ready().limiter
    return {
      get policy() {
        return asked().policy
      },
      policyOf: (key) => asked().policyOf?.(this.named(key as string)) ?? asked().policy,
      take: (key, cost) => asked().take(this.named(key as string), cost),
      peek: (key, cost) => asked().peek(this.named(key as string), cost),
      refund: (key, tokens) => asked().refund(this.named(key as string), tokens),
      penalize: (key, tokens) => asked().penalize(this.named(key as string), tokens),
      block: (key, duration) => asked().block(this.named(key as string), duration),
      reset: (key) => asked().reset(this.named(key as string)),
      close: () => asked().close(),
    }
  }

  /** How often a key has hit; undefined where nothing is known of it. */
  get(key: string): Awaitable<HitCount | undefined> {
    return this.ready().seen(this.named(key))
  }

  /** One hit more. */
  increment(key: string): Awaitable<HitCount> {
    return this.ready().hit(this.named(key))
  }

  /** One hit less, in the window at hand. */
  decrement(key: string): Awaitable<void> {
    return chained(this.ready().limiter.refund(this.named(key), 1), nothing)
  }

  /** The key begins anew; a block that was laid on it by hand is over. */
  resetKey(key: string): Awaitable<void> {
    return chained(this.ready().limiter.reset(this.named(key)), nothing)
  }

  /** All keys begin anew. @throws {PolicyError} `OPTION_INVALID` where the limiter may have others' keys. */
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
    // Of a limiter of its own nobody is told the name.
    const limiter = this.made(countingPolicy(windowMs, this.isOwn ? '' : this.ownPrefix))
    return new CountedHits(limiter, isHere(limiter))
  }

  private made(policy: Policy): LimiterVerbs {
    const { create = (asked) => createLimiter(asked) } = this
    return madeLimiter(create, policy)
  }

  private named(key: string): string {
    if ((typeof key === 'object' && key !== null) || typeof key === 'function' || typeof key === 'symbol') {
      throw new PolicyError('KEY_INVALID', 'key', key, 'must be a string: all that are no text would share one key')
    }
    // Where nobody else has keys a prefix tells nothing apart, and to put it before each takes as long as half the count.
    if (!this.isOwn && this.ownPrefix !== '') return fittedKey(`${this.ownPrefix}${key}`)
    const text = String(key)
    return fittedKey(text.charCodeAt(0) > 0 ? text : `\0${text}`)
  }
}

function deciding(limiter: LimiterVerbs, { limit, skipFailedRequests = false, skipSuccessfulRequests = false }: StoreSettings): Hits {
  const skips = skipFailedRequests ? 'skipFailedRequests' : 'skipSuccessfulRequests'
  if (skipFailedRequests || skipSuccessfulRequests) {
    // A denied request took nothing, and would be given back a token all the same.
    const mend = 'needs a store that counts: leave out limiter, or take counts of sluicegate/express instead'
    throw new PolicyError('OPTION_INVALID', skips, true, mend)
  }
  return new DecidedHits(limiter, comparedWith(limiter, limit))
}

/** The number that express-rate-limit compares hits with: it has to be what the limiter lets pass at once, or no hits would tell both apart. */
function comparedWith({ policy: { burst, name } }: LimiterVerbs, limit: unknown): LimitFor {
  // What a function says of a request is not known here.
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
      'holds permits, which express-rate-limit gives nobody back: see sluicegate/express',
    )
  }
}

function nothing(): void {}
