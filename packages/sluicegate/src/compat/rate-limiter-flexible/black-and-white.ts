import { isPromise } from '../../awaitable.js'
import { withDroppable } from '../../dropped-promise.js'
import { PolicyError } from '../../errors.js'
import { checkFunction, checkOptionNames } from '../../options/option-checks.js'
import type { Points } from './flexible-options.js'
import { RateLimiterRes } from './rate-limiter-res.js'
import type { CallOptions, RateLimiterSluicegate } from './rate-limiter-sluicegate.js'

/** Options of {@link RLWrapperBlackAndWhite}. */
export interface BlackAndWhiteOptions {
  readonly limiter: ListedVerbs
  /** Keys that always pass. */
  readonly whiteList?: readonly (string | number)[]
  /** Keys that never pass, unless they are on the white list. */
  readonly blackList?: readonly (string | number)[]
  readonly isWhiteListed?: (key: string | number) => boolean
  readonly isBlackListed?: (key: string | number) => boolean
  /** Also consume from the limiter for listed keys, so that they are counted; default false. The result is not awaited. */
  readonly runActionAnyway?: boolean
}

type Key = string | number

/** The methods of the inner limiter that are called. */
export type ListedVerbs = Pick<
  RateLimiterSluicegate,
  'consume' | 'penalty' | 'reward' | 'block' | 'get' | 'set' | 'delete' | 'keyPrefix' | 'blockDuration'
>

const OPTIONS: readonly string[] = ['limiter', 'whiteList', 'blackList', 'isWhiteListed', 'isBlackListed', 'runActionAnyway']

/**
 * `RLWrapperBlackAndWhite` of rate-limiter-flexible: keys that always pass and keys that never do, before any limiter. A key on both lists
 * passes.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 * @example new RLWrapperBlackAndWhite({ limiter, whiteList: ['127.0.0.1'], isBlackListed: (ip) => banned.has(ip) })
 */
export class RLWrapperBlackAndWhite {
  readonly limiter: ListedVerbs
  private readonly white: (key: Key) => boolean
  private readonly black: (key: Key) => boolean
  private readonly runsAnyway: boolean

  constructor(options: BlackAndWhiteOptions) {
    const own: Partial<BlackAndWhiteOptions> = checkOptionNames(options ?? {}, OPTIONS)
    const { limiter, whiteList, blackList, isWhiteListed, isBlackListed, runActionAnyway = false } = own
    if (typeof limiter?.consume !== 'function') {
      throw new PolicyError('OPTION_INVALID', 'limiter', limiter, 'must be a limiter such as new RateLimiterMemory({ points, duration })')
    }
    this.limiter = limiter
    this.white = listOf('whiteList', whiteList, 'isWhiteListed', isWhiteListed)
    this.black = listOf('blackList', blackList, 'isBlackListed', isBlackListed)
    this.runsAnyway = Boolean(runActionAnyway)
    withDroppable<RLWrapperBlackAndWhite>(this, ['penalty', 'reward', 'block', 'set', 'delete'], () => this.keyPrefix)
  }

  get keyPrefix(): string {
    return this.limiter.keyPrefix
  }

  /** In seconds. */
  get blockDuration(): number {
    return this.limiter.blockDuration
  }

  consume(key: Key, pointsToConsume: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    return this.unlessListed(key, () => this.limiter.consume(key, pointsToConsume, options), true)
  }

  penalty(key: Key, points: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    return this.unlessListed(key, () => this.limiter.penalty(key, points, options))
  }

  reward(key: Key, points: Points = 1, options?: CallOptions): Promise<RateLimiterRes> {
    return this.unlessListed(key, () => this.limiter.reward(key, points, options))
  }

  block(key: Key, secDuration: number, options?: CallOptions): Promise<RateLimiterRes> {
    return this.unlessListed(key, () => this.limiter.block(key, secDuration, options))
  }

  set(key: Key, points: number, secDuration: number): Promise<RateLimiterRes> {
    return this.unlessListed(key, () => this.limiter.set(key, points, secDuration))
  }

  /** The state of a key; with `runActionAnyway` as the limiter has it, also for listed keys. */
  get(key: Key, options?: CallOptions): Promise<RateLimiterRes | null> {
    if (this.runsAnyway) return this.limiter.get(key, options)
    return this.unlessListed<RateLimiterRes | null>(key, () => this.limiter.get(key, options))
  }

  delete(key: Key, options?: CallOptions): Promise<boolean> {
    return this.limiter.delete(key, options)
  }

  private async unlessListed<Answer>(key: Key, ask: () => Promise<Answer>, rejectsBlack = false): Promise<Answer | RateLimiterRes> {
    const isWhite = this.white(key)
    if (!isWhite && !this.black(key)) return ask()
    if (this.runsAnyway) ask().catch(() => undefined)
    if (isWhite) return new RateLimiterRes(Number.MAX_SAFE_INTEGER, 0, 0, false)
    const never = new RateLimiterRes(0, Number.MAX_SAFE_INTEGER, 0, false)
    return rejectsBlack ? Promise.reject(never) : never
  }
}

function listOf(name: string, list: readonly Key[] | undefined, option: string, isListed: unknown): (key: Key) => boolean {
  if (list !== undefined && !Array.isArray(list)) throw new PolicyError('OPTION_INVALID', name, list, 'must be an array of keys')
  checkFunction(option, isListed, 'must be a function of a key')
  const keys = new Set(list)
  return (key) => {
    if (isListed === undefined || keys.has(key)) return keys.has(key)
    const answer: unknown = (isListed as (key: Key) => unknown)(key)
    // A promise is truthy: every key would be on the list.
    if (isPromise(answer)) throw new PolicyError('OPTION_INVALID', option, answer, 'must return a boolean, and not a promise')
    return Boolean(answer)
  }
}
