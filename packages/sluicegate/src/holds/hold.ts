import type { Answered, Awaitable, When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { holdsPermits } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import type { Key } from '../key.js'
import { checkOneOf, checkOptions, isInteger } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { checkedMs, type Duration } from '../time/duration.js'

/** What `limiter.open` takes beside the key. */
export interface OpenOptions {
  /**
   * Tokens that the work will probably cost, which are held for it: an integer >= 1, or `'learned'` for what 99 of 100 works cost at
   * most that were closed of late, of the key where it is busy enough. Until something is known, `most` is held, or without one below the burst a hundredth of that.
   *
   * @defaultValue `'learned'`
   * @example limiter.open('ada', { expect: 200 })
   */
  readonly expect?: number | 'learned'
  /**
   * The most that the work may cost: what would go beyond it is refused, whatever is free.
   *
   * @defaultValue none
   * @example limiter.open('ada', { most: 4_096 })
   */
  readonly most?: number
  /**
   * How long a hold lives after its last `add`, from 10 ms to one day. It ends up to an eighth later.
   *
   * @defaultValue `'15s'`
   * @example limiter.open('ada', { ttl: '1m' })
   */
  readonly ttl?: Duration
  /**
   * What an `add` does that neither the hold nor free room covers: `cut` refuses it, `wait` waits for room, at most for `ttl`, `finish` spends it
   * all the same, as debt that later requests pay.
   *
   * @defaultValue `'cut'`
   * @example limiter.open('ada', { over: 'finish' })
   */
  readonly over?: 'cut' | 'wait' | 'finish'
}

/**
 * Work whose cost is known only afterwards, see {@link Limiter.open}: the decision that let it begin, and what it spends as it goes.
 * `Hold<Awaitable<boolean>>`: an `add` may have to wait. Over a store (`'later'`) it may, too, and the work ends with a promise.
 */
export interface Hold<Added extends Awaitable<boolean> = boolean, Time extends When = 'now'> extends Decision {
  /** Tokens that are still held for it. 0 after its `ttl`: then it spends what is free. */
  readonly held: number
  /** Tokens that it has spent. */
  readonly used: number
  /** Those of them that were beyond the policy: debt. */
  readonly over: number
  /**
   * Spends `cost` tokens, from the hold first, then of what is free; renews the hold. False: nothing was spent, and the work has to end. An integer >= 0.
   *
   * @throws {PolicyError} `COST_INVALID`
   */
  add(cost: number): Added
  /**
   * Ends the work and frees what is still held. Once.
   *
   * @param cost what it cost in all, if that is known: what is missing is spent, as debt if need be. Below what was added nothing comes back.
   * @throws {PolicyError} `COST_INVALID`
   */
  close(cost?: number): Answered<Time, Decision>
  /** How many pieces of this price it may still spend now, without waiting and without debt. A fraction is a price too. */
  affordable(price: number): number
  /** {@link Hold.close}, for `using`. */
  [Symbol.dispose](): void
}

/** A hold of any limiter: over a store, or with `over: 'wait'`, an `add` is a promise. */
export type AnyHold = Hold<Awaitable<boolean>, When>

const OPTIONS: readonly string[] = ['expect', 'most', 'ttl', 'over'] satisfies (keyof OpenOptions)[]
const DEFAULT_TTL_MS = 15_000
const LEAST_TTL_MS = 10
const MOST_TTL_MS = 86_400_000

/** {@link OpenOptions}, checked. */
export interface OpenRequest {
  readonly expect: number | 'learned'
  /** `Infinity`: no bound. */
  readonly most: number
  readonly ttlUs: number
  readonly over: 'cut' | 'wait' | 'finish'
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID`, `COST_INVALID`, `DURATION_INVALID` */
export function checkedOpenRequest(options: OpenOptions): OpenRequest {
  const own = checkOptions(options, OPTIONS, "{ expect: 200, ttl: '15s' }", 'open()')
  const { expect = 'learned', most = Number.POSITIVE_INFINITY, ttl = DEFAULT_TTL_MS, over = 'cut' } = own
  if (expect !== 'learned') checkTokens('expect', expect)
  if (most !== Number.POSITIVE_INFINITY) checkTokens('most', most)
  checkOneOf('over', over, ['cut', 'wait', 'finish'])
  return { expect, most, ttlUs: Math.round(checkedMs('ttl', ttl, LEAST_TTL_MS, MOST_TTL_MS) * 1000), over }
}

function checkTokens(option: string, tokens: unknown): void {
  if (!isInteger(tokens, 1, Number.MAX_SAFE_INTEGER)) throw new PolicyError('COST_INVALID', option, tokens, 'must be an integer >= 1')
}

/** What a piece, or the whole work, cost. @throws {PolicyError} `COST_INVALID` */
export function checkSpent(cost: unknown): asserts cost is number {
  if (isInteger(cost, 0, Number.MAX_SAFE_INTEGER)) return
  throw new PolicyError('COST_INVALID', 'cost', cost, 'must be an integer >= 0')
}

/** What one piece costs. @throws {PolicyError} `COST_INVALID` */
export function checkPrice(price: unknown): asserts price is number {
  if (typeof price === 'number' && price > 0 && price < Number.POSITIVE_INFINITY) return
  throw new PolicyError('COST_INVALID', 'price', price, 'must be a number above 0')
}

/** @throws {PolicyError} `POLICY_INVALID` when one of these policies gives permits. */
export function requireNoPermits(policies: readonly Policy[]): void {
  const concurrent = policies.find(holdsPermits)
  if (concurrent === undefined) return
  throw new PolicyError('POLICY_INVALID', 'policy', concurrent.name, 'is concurrency, whose permits are holds already: take() one')
}

/** The key by which the cost of work is learned: of several levels the last is the narrowest, as a rule. */
export function learnedBy(keys: Key): string {
  return typeof keys === 'string' ? keys : (keys[keys.length - 1] as string)
}
