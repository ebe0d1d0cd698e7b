import { isPromise } from '../../awaitable.js'
import { createLimiter, TABLE_OPTIONS } from '../../create-limiter.js'
import { holdsPermits } from '../../decision/permit.js'
import { withDroppable } from '../../dropped-promise.js'
import { PolicyError } from '../../errors.js'
import { fittedKey } from '../../keys/key-reader.js'
import type { Limiter, LimiterOptions } from '../../limiter.js'
import { checkLimiter } from '../../options/option-checks.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import {
  checkCallOptions,
  checkedBlockMs,
  checkedLockMs,
  checkedOptions,
  checkedPoints,
  checkFlexibleOptions,
  checkKeyPrefix,
  FLEXIBLE_OPTIONS,
  type FlexibleOptions,
  flexiblePolicy,
  type Points,
} from './flexible-options.js'
import { isBlocked, KeyBlocks } from './key-blocks.js'
import { PointResults, type RateLimiterRes } from './rate-limiter-res.js'

/** Options of {@link RateLimiterSluicegate}. */
export interface RateLimiterSluicegateOptions<Verbs extends LimiterVerbs = LimiterVerbs> {
  /** In memory or shared, with any policy except `concurrency`. */
  readonly limiter: Verbs
  /** Seconds for which a key is blocked after a denial; default 0, no block. */
  readonly blockDuration?: number
  /** Prefix of keys, followed by a colon; default none. */
  readonly keyPrefix?: string
}

/** Options of a call: none is supported. */
export type CallOptions = Readonly<Record<string, unknown>>

const CHANGE = 'cannot be set: say limiter.limiter.update(fixedWindow({ limit, window, name: limiter.limiter.policy.name }))'
const MAKE_ANOTHER = 'cannot be set: make another limiter'

/**
 * The methods of rate-limiter-flexible over any limiter. Each returns a promise; a denial rejects with a {@link RateLimiterRes}, anything
 * else with an `Error`: `PolicyError` on misuse, `StoreError` if the limiter cannot decide.
 *
 * Denied points are not counted.
 *
 * @throws {PolicyError} on an option that is not supported; the message says what to write instead.
 * @example
 * const limiter = new RateLimiterSluicegate({ limiter: createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 20 })) })
 * await limiter.consume('ada', 2)
 */
export class RateLimiterSluicegate<Verbs extends LimiterVerbs = LimiterVerbs> {
  /** The limiter itself, with all its methods; its keys are those of {@link getKey}. */
  readonly limiter: Verbs
  private readonly prefix: string
  private readonly blockMs: number
  private readonly results: PointResults
  private readonly blocks: KeyBlocks

  constructor(options: RateLimiterSluicegateOptions<Verbs>) {
    const own = checkFlexibleOptions(options, ['limiter', 'blockDuration', 'keyPrefix'])
    const { limiter, blockDuration = 0, keyPrefix = '' } = own
    checkLimiter('limiter', limiter)
    if (holdsPermits(limiter.policy)) {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'holds permits, which this class never releases: call its take() itself')
    }
    checkKeyPrefix(keyPrefix)
    this.limiter = limiter
    this.prefix = keyPrefix
    this.blockMs = checkedBlockMs(blockDuration)
    this.blocks = new KeyBlocks(limiter, this.blockMs)
    this.results = new PointResults(limiter, this.blocks.isAtDenial)
    withDroppable<RateLimiterSluicegate<Verbs>>(this, ['penalty', 'reward', 'block', 'set', 'delete'], () => limiter.policy.name)
  }

  /** Points that may be consumed at once. */
  get points(): number {
    return this.limiter.policy.burst
  }

  set points(value: never) {
    throw new PolicyError('OPTION_INVALID', 'points', value, CHANGE)
  }

  /** The window in seconds. */
  get duration(): number {
    return this.limiter.policy.windowMs / 1000
  }

  set duration(value: never) {
    throw new PolicyError('OPTION_INVALID', 'duration', value, CHANGE)
  }

  /** In seconds. */
  get blockDuration(): number {
    return this.blockMs / 1000
  }

  set blockDuration(value: never) {
    throw new PolicyError('OPTION_INVALID', 'blockDuration', value, MAKE_ANOTHER)
  }

  get keyPrefix(): string {
    return this.prefix
  }

  set keyPrefix(value: never) {
    throw new PolicyError('OPTION_INVALID', 'keyPrefix', value, MAKE_ANOTHER)
  }

  get msDuration(): number {
    return this.limiter.policy.windowMs
  }

  get msBlockDuration(): number {
    return this.blockMs
  }

  /** The limiter's key: with the prefix, and as a digest if it is too long. */
  getKey(key: string | number): string {
    return fittedKey(this.prefix === '' ? String(key) : `${this.prefix}:${key}`)
  }

  /** A limiter's key without the prefix. */
  parseKey(limiterKey: string): string {
    return this.prefix === '' ? limiterKey : limiterKey.slice(this.prefix.length + 1)
  }

  /** Consumes points if they are available. @returns {Promise} that rejects with a {@link RateLimiterRes} if they are not. */
  async consume(key: string | number, pointsToConsume: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    checkCallOptions(options)
    const points = checkedPoints(pointsToConsume)
    const named = this.getKey(key)
    const taken = this.limiter.take(named, points)
    // Not awaited if it is synchronous: of several concurrent calls those after the first denial have to find the block.
    const decision = isPromise(taken) ? await taken : taken
    if (decision.allowed) return this.results.consumed(named, decision, points)
    const denial = await this.blocks.afterDenial(decision, named, points)
    return Promise.reject(this.results.denied(named, denial, points))
  }

  /** Consumes points even if they are not available, down to a debt of ten times all points; none of a blocked key. */
  async penalty(key: string | number, points: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    checkCallOptions(options)
    const many = checkedPoints(points)
    const named = this.getKey(key)
    const state = await this.limiter.peek(named)
    // The debt would outlive the block, after which all points are new.
    if (isBlocked(state)) return this.results.state(named, state)
    return this.results.changed(named, await this.limiter.penalize(named, many), many)
  }

  /** Gives back points, at most those that were consumed. */
  async reward(key: string | number, points: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    checkCallOptions(options)
    const many = checkedPoints(points)
    const named = this.getKey(key)
    return this.results.changed(named, await this.limiter.refund(named, many))
  }

  /** Blocks a key for seconds; 0 means for ever, which is 100 years. Then all points are new. The longest block wins. */
  async block(key: string | number, secDuration: number, options?: CallOptions): Promise<RateLimiterRes> {
    checkCallOptions(options)
    const ms = checkedLockMs(secDuration)
    const named = this.getKey(key)
    return this.results.state(named, await this.blocks.block(named, ms))
  }

  /** The state of a key; null for an unknown key. */
  async get(key: string | number, options?: CallOptions): Promise<RateLimiterRes | null> {
    checkCallOptions(options)
    const named = this.getKey(key)
    return this.results.known(named, await this.limiter.peek(named))
  }

  /** Not supported: it always rejects. */
  async set(key: string | number, points: number, secDuration: number): Promise<RateLimiterRes> {
    const mend = 'is not supported: call delete() and then penalty() for what is consumed in the current window, or block()'
    throw new PolicyError('OPTION_INVALID', 'set', [key, points, secDuration], mend)
  }

  /** Resets the points and the block of a key. @returns {Promise} whether there was anything to reset. */
  async delete(key: string | number, options?: CallOptions): Promise<boolean> {
    checkCallOptions(options)
    const named = this.getKey(key)
    const known = this.results.known(named, await this.limiter.peek(named))
    await this.limiter.reset(named)
    return known !== null
  }

  /** Does nothing: a limiter that was given stays open. */
  close(): void {}
}

/** Options of {@link RateLimiterMemory}: those of rate-limiter-flexible, and some of `createLimiter`. */
export interface RateLimiterMemoryOptions
  extends FlexibleOptions,
    Pick<LimiterOptions, 'maxKeys' | 'growTo' | 'clock' | 'onFull' | 'newcomers' | 'hotKeys' | 'maxWaiters'> {}

const OPTIONS = [...FLEXIBLE_OPTIONS, ...TABLE_OPTIONS] as const satisfies readonly (keyof RateLimiterMemoryOptions)[]

/**
 * `RateLimiterMemory` of rate-limiter-flexible: points in windows, in the shared memory of this process.
 *
 * @throws {PolicyError} on an option that is not supported; the message says what to write instead.
 * @example
 * const limiter = new RateLimiterMemory({ points: 5, duration: 60 })
 * limiter.consume(request.ip).then(() => serve(), (denied) => denied instanceof Error ? fail(denied) : tooMany(denied.msBeforeNext))
 */
export class RateLimiterMemory extends RateLimiterSluicegate<Limiter> {
  constructor(options: RateLimiterMemoryOptions) {
    const { points, duration, blockDuration, keyPrefix, ...memory } = checkedOptions(options, OPTIONS)
    super({ limiter: createLimiter(flexiblePolicy({ points, duration }), memory), blockDuration, keyPrefix })
  }

  override close(): void {
    this.limiter.close()
  }
}
