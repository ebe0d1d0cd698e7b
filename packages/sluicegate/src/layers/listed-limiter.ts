import { blockUs, checkedCost, checkedTokens } from '../arguments.js'
import type { Awaitable, When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { denials } from '../decision/diagnostics.js'
import { holdsPermits, type PermitOf } from '../decision/permit.js'
import { type Reservation, TAKE, uncharged, WAIT } from '../decision/reservation.js'
import { PolicyError } from '../errors.js'
import type { AnyHold, OpenOptions } from '../holds/hold.js'
import { uncountedHold } from '../holds/uncounted-hold.js'
import { checkKey, isByName, isKey, KEY_WORDS, type KeysByName } from '../key.js'
import type { BoundKey, Key, KeyList, LimiterHandle, ReserveOptions, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { shownAs } from '../shown.js'
import type { Duration } from '../time/duration.js'
import { atOnce, type InnerLimiter, Layer, policyIn, settling } from './layer.js'

/** The form that is posted to another thread; functions cannot be posted. */
export type PostedKeyList = ReadonlySet<string> | 'function'

/** A {@link KeyList} made ready: `has` answers, `posted` travels. */
export interface PreparedKeyList {
  has(key: string): boolean
  readonly posted: PostedKeyList
}

/** The allow and deny list of a limiter. */
export interface KeyLists {
  readonly allow: PreparedKeyList
  readonly deny: PreparedKeyList
  /** Keys per call under `allOf`; otherwise undefined. */
  readonly keys: number | undefined
}

/**
 * The list that holds a key. Several keys are denied if one of them is on the deny list, and allowed if all are on the allow list.
 *
 * @throws {PolicyError} `KEY_INVALID`
 */
function verdictOn(given: Key | KeysByName, { allow, deny, keys }: KeyLists): 'allow' | 'deny' | undefined {
  // Their order says nothing here.
  const key = isByName(given) ? Object.values(given) : given
  if (typeof key === 'string' || !Array.isArray(key)) {
    checkKey(key)
    return deny.has(key as string) ? 'deny' : allow.has(key as string) ? 'allow' : undefined
  }
  // As many keys as there are policies, or the limiter within refuses them.
  if (key.length !== keys) return undefined
  key.forEach(checkKey)
  return key.some(deny.has) ? 'deny' : key.every(allow.has) ? 'allow' : undefined
}

/** The key for which a call is denied by {@link verdictOn}. */
function culpritIn(key: Key, { deny }: KeyLists): string {
  return typeof key === 'string' ? key : (Object.values(key).find(deny.has) ?? '')
}

/** @throws {PolicyError} `OPTION_INVALID`, or `KEY_INVALID` for a key that no call takes. */
export function preparedKeyList(list: KeyList | undefined, option: 'allow' | 'deny'): PreparedKeyList {
  if (typeof list === 'function') return { has: (key) => asked(list, key, option), posted: 'function' }
  const keys = new Set<string>()
  for (const key of list === undefined ? [] : checkedIterable(list, option)) {
    if (typeof key !== 'string') throw new PolicyError('OPTION_INVALID', option, key, 'must hold strings only')
    if (!isKey(key)) throw new PolicyError('KEY_INVALID', option, key, `must hold strings ${KEY_WORDS}`)
    keys.add(key)
  }
  return { has: (key) => keys.has(key), posted: keys }
}

/**
 * The list in the thread that it was posted to, unless that thread has its own.
 *
 * @throws {PolicyError} `OPTION_INVALID` when it is a function and was not given again.
 */
export function travelledKeyList(
  own: KeyList | undefined,
  posted: PostedKeyList | undefined,
  option: 'allow' | 'deny',
): KeyList | undefined {
  if (own !== undefined) return own
  if (posted === 'function') throw new PolicyError('OPTION_INVALID', option, own, 'is a function, which does not travel: pass it again')
  return posted
}

function asked(list: (key: string) => boolean, key: string, option: string): boolean {
  const answer: unknown = list(key)
  // A promise would always count as true.
  if (typeof answer !== 'boolean') throw new PolicyError('OPTION_INVALID', option, answer, 'must return true or false, at once')
  return answer
}

function checkedIterable(list: unknown, option: string): Iterable<unknown> {
  // A string would be a list of its characters.
  if (typeof list === 'object' && list !== null && Symbol.iterator in list) return list as Iterable<unknown>
  throw new PolicyError('OPTION_INVALID', option, list, 'must be an iterable of keys, such as an array or a set, or a function of a key')
}

/** What the handle of a {@link ListedLimiter} carries beside that of its inner limiter. */
export interface ListedHandle<Answer extends Decision = Decision> extends LimiterHandle<Answer> {
  readonly allow?: PostedKeyList
  readonly deny?: PostedKeyList
}

/** Decides about the keys on the lists of a limiter, in memory or shared. All methods return undefined for other keys. */
export class ListedKeys<Answer extends Decision> {
  readonly lists: KeyLists
  private readonly policyOf: (key: Key) => Policy
  private readonly permitOf: PermitOf

  /** @param policyOf the policy that the inner limiter has for a key. */
  constructor(lists: KeyLists, policyOf: (key: Key) => Policy, permitOf: PermitOf) {
    this.lists = lists
    this.policyOf = policyOf
    this.permitOf = permitOf
  }

  has(key: Key): boolean {
    return verdictOn(key, this.lists) !== undefined
  }

  /** The answer to a take; a denial is published. */
  taken(key: Key, cost: number): Answer | undefined {
    const decision = this.foreseen(key, cost)
    if (decision === undefined) return undefined
    if (!decision.allowed && denials.hasSubscribers)
      denials.publish({ policy: decision.policy, key: culpritIn(key, this.lists), cost, decision })
    return (holdsPermits(this.policyOf(key)) ? this.permitOf(decision) : decision) as Answer
  }

  /** The answer to a peek. */
  foreseen(key: Key, cost = 1): Decision | undefined {
    const verdict = verdictOn(key, this.lists)
    if (verdict === undefined) return undefined
    checkedCost(cost)
    return listedDecision(this.policyOf(key), verdict === 'allow')
  }

  /** The answer to a verb that changes nothing of a listed key; its arguments are checked all the same. */
  unchanged(key: Key, check: () => void): Decision | undefined {
    const listed = this.foreseen(key)
    if (listed !== undefined) check()
    return listed
  }
}

/**
 * Keys that always pass and keys that never do. The inner limiter is not called for them: nothing is counted, and no verb changes
 * anything. A call with several keys (`allOf`) is denied if one of them is on the deny list, and passes uncounted only if all are on the
 * allow list; otherwise all of them are counted.
 */
export class ListedLimiter<Answer extends Decision> extends Layer<Answer> {
  private readonly listed: ListedKeys<Answer>

  constructor(inner: InnerLimiter<Answer>, lists: KeyLists, permitOf: PermitOf) {
    super(inner)
    this.listed = new ListedKeys(lists, (key) => policyIn(inner, key), permitOf)
  }

  take(key: Key, cost = 1): Awaitable<Answer> {
    return this.listed.taken(key, cost) ?? this.inner.take(key, cost)
  }

  peek(key: Key, cost = 1): Awaitable<Decision> {
    return this.listed.foreseen(key, cost) ?? this.inner.peek(key, cost)
  }

  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    if (!this.listed.has(key)) return this.inner.wait(key, options)
    return atOnce(key, options, (cost) => this.take(key, cost))
  }

  [TAKE](key: Key, cost = 1): Awaitable<Reservation<When, Answer>> {
    const listed = this.listed.taken(key, cost)
    return listed === undefined ? settling(this.inner)[TAKE](key, cost) : uncharged(listed)
  }

  async [WAIT](key: Key, options: WaitOptions = {}): Promise<Reservation<When, Answer>> {
    if (!this.listed.has(key)) return settling(this.inner)[WAIT](key, options)
    return atOnce(key, options, (cost) => this[TAKE](key, cost))
  }

  reserve(key: Key, cost: number, options?: ReserveOptions): Awaitable<Reservation<When>> {
    const decision = this.listed.foreseen(key, cost)
    return decision === undefined ? this.inner.reserve(key, cost, options) : uncharged(decision, () => decision)
  }

  override open(key: Key, options?: OpenOptions): Awaitable<AnyHold> {
    const listed = this.listed.taken(key, 1)
    return listed === undefined ? super.open(key, options) : uncountedHold(listed)
  }

  refund(key: Key, tokens: number): Awaitable<Decision> {
    return this.listed.unchanged(key, () => checkedTokens(tokens)) ?? this.inner.refund(key, tokens)
  }

  penalize(key: Key, tokens: number): Awaitable<Decision> {
    return this.listed.unchanged(key, () => checkedTokens(tokens)) ?? this.inner.penalize(key, tokens)
  }

  block(key: Key, duration: Duration): Awaitable<Decision> {
    return this.listed.unchanged(key, () => blockUs(duration)) ?? this.inner.block(key, duration)
  }

  reset(key: Key): Awaitable<Decision> {
    return this.listed.foreseen(key) ?? this.inner.reset(key)
  }

  /** A function is called for the key at each take and peek, not only here. */
  key(key: Key): BoundKey<Answer, When> {
    const bound = this.inner.key(key)
    return this.bound({
      key: bound.key,
      take: (cost = 1) => this.listed.taken(bound.key, cost) ?? bound.take(cost),
      peek: (cost = 1) => this.listed.foreseen(bound.key, cost) ?? bound.peek(cost),
    })
  }

  override handle(): LimiterHandle {
    const { allow, deny } = this.listed.lists
    const handle: ListedHandle = { ...super.handle(), allow: allow.posted, deny: deny.posted }
    return shownAs(handle, 'LimiterHandle', {})
  }
}

/** The decision on a key that is on a list. */
function listedDecision(policy: Policy, allowed: boolean): Decision {
  const { name, limit, burst, policies } = policy
  if (policies !== undefined) {
    const parts = policies.map((part) => listedDecision(part, allowed))
    const binding = parts.reduce((least, part) => (part.remaining < least.remaining ? part : least))
    return { ...binding, parts }
  }
  const retryAfterMs = allowed ? 0 : Number.POSITIVE_INFINITY
  // Nothing is counted, so nothing has to refill.
  return { allowed, limit, remaining: allowed ? burst : 0, retryAfterMs, resetAfterMs: 0, policy: name, source: 'memory' }
}
