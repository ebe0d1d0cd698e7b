import { isPromise } from '../../awaitable.js'
import { holdsPermits } from '../../empty-permit.js'
import { PolicyError } from '../../errors.js'
import { fittedKey } from '../../keys/fitted-key.js'
import { checkLimiter } from '../../options/option-checks.js'
import type { LimiterVerbs } from '../limiter-verbs.js'
import {
  checkCallOptions,
  checkedBlockMs,
  checkedLockMs,
  checkedPoints,
  checkFlexibleOptions,
  checkKeyPrefix,
  type Points,
} from './flexible-options.js'
import { isBlocked, KeyBlocks } from './key-blocks.js'
import { ToldPoints } from './points.js'
import type { RateLimiterRes } from './rate-limiter-res.js'

/** Options of {@link RateLimiterSluicegate}. */
export interface RateLimiterSluicegateOptions<Verbs extends LimiterVerbs = LimiterVerbs> {
  /** Of this process or of a fleet, of any policy but `concurrency`. */
  readonly limiter: Verbs
  /** Seconds that a key is blocked for when it is denied; default 0, it is not. */
  readonly blockDuration?: number
  /** What keys begin with, and a colon; default nothing. */
  readonly keyPrefix?: string
}

/** What may stand behind points: nothing that is honoured. */
export type CallOptions = Readonly<Record<string, unknown>>

const CHANGE = 'cannot be set: say limiter.limiter.update(fixedWindow({ limit, window, name: limiter.limiter.policy.name }))'
const MAKE_ANOTHER = 'cannot be set: make another limiter'

/**
 * The methods of rate-limiter-flexible over any limiter. Each answers with a promise; a denial rejects with a {@link RateLimiterRes}, all else
 * that goes wrong with an `Error`: `PolicyError` on misuse, `StoreError` where the limiter cannot decide.
 *
 * What is denied is not counted.
 *
 * @throws {PolicyError} on an option that cannot be honoured; the message says what to write instead.
 * @example
 * const limiter = new RateLimiterSluicegate({ limiter: createLimiter(tokenBucket({ limit: 10, window: '1s', burst: 20 })) })
 * await limiter.consume('ada', 2)
 */
export class RateLimiterSluicegate<Verbs extends LimiterVerbs = LimiterVerbs> {
  /** The limiter behind it, with all its verbs; its keys are those of {@link getKey}. */
  readonly limiter: Verbs
  private readonly prefix: string
  private readonly blockMs: number
  private readonly told: ToldPoints
  private readonly blocks: KeyBlocks

  constructor(options: RateLimiterSluicegateOptions<Verbs>) {
    checkFlexibleOptions(options, ['limiter', 'blockDuration', 'keyPrefix'])
    const { limiter, blockDuration = 0, keyPrefix = '' } = options
    checkLimiter('limiter', limiter)
    if (holdsPermits(limiter.policy)) {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'holds permits, which nobody here gives back: call its take() itself')
    }
    checkKeyPrefix(keyPrefix)
    this.limiter = limiter
    this.prefix = keyPrefix
    this.blockMs = checkedBlockMs(blockDuration)
    this.blocks = new KeyBlocks(limiter, this.blockMs)
    this.told = new ToldPoints(limiter, this.blocks.isAtDenial)
  }

  /** What may be consumed at once. */
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

  /** The key of the limiter: with the prefix, and as a digest where it would be too long. */
  getKey(key: string | number): string {
    return fittedKey(this.prefix === '' ? String(key) : `${this.prefix}:${key}`)
  }

  /** The same without the prefix. */
  parseKey(limiterKey: string): string {
    return this.prefix === '' ? limiterKey : limiterKey.slice(this.prefix.length + 1)
  }

  /** Consumes points if they are there. @returns {Promise} that rejects with a {@link RateLimiterRes} where they are not. */
  async consume(key: string | number, pointsToConsume: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    checkCallOptions(options)
    const points = checkedPoints(pointsToConsume)
    const named = this.getKey(key)
    const taken = this.limiter.take(named, points)
    // Not awaited where it is there: of several callers at once those who come after the first denial are to find the block.
    const decision = isPromise(taken) ? await taken : taken
    if (decision.allowed) return this.told.consumed(named, decision, points)
    const denial = await this.blocks.afterDenial(decision, named, points)
    return Promise.reject(this.told.denied(named, denial, points))
  }

  /** Consumes points whether they are there or not, down to a debt of ten times all of them; nothing of a key that is blocked. */
  async penalty(key: string | number, points: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    checkCallOptions(options)
    const many = checkedPoints(points)
    const named = this.getKey(key)
    const standing = await this.limiter.peek(named)
    // It would outlive the block, with which all points are new.
    if (isBlocked(standing)) return this.told.standing(named, standing)
    return this.told.changed(named, await this.limiter.penalize(named, many), many)
  }

  /** Gives back points, at most as many as were consumed. */
  async reward(key: string | number, points: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    checkCallOptions(options)
    const many = checkedPoints(points)
    const named = this.getKey(key)
    return this.told.changed(named, await this.limiter.refund(named, many))
  }

  /** Denies the key everything for so many seconds, 0 for ever, which is a hundred years; then all points are new. The longest block wins. */
  async block(key: string | number, secDuration: number, options?: CallOptions): Promise<RateLimiterRes> {
    checkCallOptions(options)
    const ms = checkedLockMs(secDuration)
    const named = this.getKey(key)
    return this.told.standing(named, await this.blocks.block(named, ms))
  }

  /** How a key stands, or null where nothing is known of it. */
  async get(key: string | number, options?: CallOptions): Promise<RateLimiterRes | null> {
    checkCallOptions(options)
    const named = this.getKey(key)
    return this.told.known(named, await this.limiter.peek(named))
  }

  /** Not to be had: it always rejects. */
  async set(key: string | number, points: number, secDuration: number): Promise<RateLimiterRes> {
    const mend = 'cannot be: say delete() and then penalty() for what is consumed in the window at hand, or block()'
    throw new PolicyError('OPTION_INVALID', 'set', [key, points, secDuration], mend)
  }

  /** Forgets what was consumed, and any block. @returns {Promise} whether there was anything to forget. */
  async delete(key: string | number, options?: CallOptions): Promise<boolean> {
    checkCallOptions(options)
    const named = this.getKey(key)
    const known = this.told.known(named, await this.limiter.peek(named))
    await this.limiter.reset(named)
    return known !== null
  }

  /** A limiter that was given stays open. */
  close(): void {}
}
