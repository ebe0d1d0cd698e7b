import type { Decision } from './decision/decision.js'
import { checkedHotKeys } from './decision/hot-keys.js'
import type { AnswerOf } from './decision/permit.js'
import { defaultClock } from './default-clock.js'
import { PolicyError } from './errors.js'
import { attachedLayers, layered, restoredLayers } from './layers/limiter-layers.js'
import { watched } from './layers/watched.js'
import type { Limiter, LimiterHandle, LimiterOptions } from './limiter.js'
import { noteMade } from './made-in-handler.js'
import { MOST_KEYS, type SectionOptions } from './memory/core-memory.js'
import { checkedHandle } from './memory/handle-check.js'
import { attachedMemoryLimiter, type NewMemory, newMemoryLimiter, optionsIn, restoredMemoryLimiter } from './memory/memory-limiters.js'
import type { Snapshot } from './memory/snapshot/snapshot.js'
import { asGiven, checkInteger, checkOptions } from './options/option-checks.js'
import type { WithOverrides } from './overrides.js'
import { checkedPlans, type PolicyOfKey, planFor, policyOfKey, requireNoPermitPlans } from './plan-options.js'
import { checkedPolicy } from './policy/checked-policy.js'
import type { Policy } from './policy/policy.js'
import { withQueue } from './queue/create-queue.js'
import type { SharedLimiter } from './shared/shared-limiter.js'
import type { SharedOptions } from './shared/shared-options.js'
import { checkStore, isStore, LIMITER } from './shared/store.js'
import { checkClock, clockFromHandle } from './time/clock.js'
import type { Duration } from './time/duration.js'
import type { WatchOptions } from './watch-options.js'

const DEFAULT_MAX_WAITERS = 10_000
const MOST_WAITERS = 1_000_000
const EXAMPLE = '{ hotKeys: 10 }'
const STORE = ['store'] as const
const WATCHED = ['soft', 'onSoft', 'ledger'] as const
const OPTIONS: readonly string[] = [
  'store',
  'maxKeys',
  'clock',
  'onFull',
  'hotKeys',
  'maxWaiting',
  'policyFor',
  'policies',
  'overrides',
  'banAfter',
  'allow',
  'deny',
  'shadow',
  'soft',
  'onSoft',
  'ledger',
]
const ATTACH_OPTIONS: readonly string[] = ['clock', 'hotKeys', 'maxWaiting', 'policyFor', 'banAfter', 'allow', 'deny', 'shadow']

const RESTORE_OPTIONS: readonly string[] = [...ATTACH_OPTIONS, 'policies', 'overrides']

/** What {@link attachLimiter} takes beside the handle. */
export interface AttachOptions extends Pick<LimiterOptions, 'clock' | 'hotKeys' | 'maxWaiting' | 'banAfter' | 'allow' | 'deny' | 'shadow'> {
  readonly policyFor?: PolicyOfKey | undefined
}

/** What {@link restoreLimiter} takes beside the snapshot. */
export type RestoreOptions = AttachOptions & Pick<LimiterOptions, 'policies' | 'overrides'>

type InnerRoom = Pick<SectionOptions, 'growTo' | 'newcomers'> & Pick<NewMemory, 'planFor'>

/** Policies of single keys, kept where the state is. */
type KeepingOverrides = { readonly overrides: true | { readonly maxAge?: Duration } }

/**
 * The limiter of a policy. In shared memory: exact, shared with worker threads through {@link Limiter.handle}, and every answer comes at once. With the option `store`: over a store, whose budget several processes share; answers are promises, or decisions at once where tokens are leased.
 *
 * @throws {PolicyError} on an unknown option or one out of range; over a store also `LEASE_UNSUPPORTED` for `mode: 'leased'` and permits, and
 * `CROSS_SLOT` for an `allOf` that the store cannot charge together.
 * @example
 * const limiter = createLimiter(tokenBucket({ limit: 100, window: '1m' }))
 * const { allowed, retryAfterMs } = limiter.take('user:42')
 * @example
 * const shared = createLimiter(tokenBucket({ limit: 100, window: '1m', name: 'api' }), { store: redis(client) })
 * const { allowed, retryAfterMs } = await shared.take('user:42')
 */
export function createLimiter<P extends Policy>(
  policy: P,
  options: SharedOptions & KeepingOverrides,
): SharedLimiter<AnswerOf<P, 'later'>> & WithOverrides<'later'>
export function createLimiter<P extends Policy>(policy: P, options: SharedOptions): SharedLimiter<AnswerOf<P, 'later'>>
export function createLimiter<P extends Policy>(
  policy: P,
  options: LimiterOptions & { readonly overrides: true },
): Limiter<AnswerOf<P>> & WithOverrides
export function createLimiter<P extends Policy>(policy: P, options?: LimiterOptions): Limiter<AnswerOf<P>>
export function createLimiter<P extends Policy>(
  policy: P,
  options: LimiterOptions | SharedOptions,
): Limiter<AnswerOf<P>> | SharedLimiter<AnswerOf<P, 'later'>>
export function createLimiter(policy: Policy, given: LimiterOptions | SharedOptions = {}): Limiter | SharedLimiter {
  const plain = limiterOf(policy, given)
  const { soft, onSoft, ledger } = asGiven(Object(given) as WatchOptions, WATCHED)
  const isWatched = soft !== undefined || onSoft !== undefined || ledger !== undefined
  const limiter = isWatched ? watched(plain, limiterOf, given) : plain
  noteMade(limiter.policy, createLimiter)
  return limiter
}

/** In memory, or over the store that the options name; without what looks at its decisions. */
export function limiterOf(policy: Policy, given: LimiterOptions | SharedOptions): Limiter | SharedLimiter {
  if (isStore(given)) throw new PolicyError('OPTION_INVALID', 'options', given, 'must be an object, and this is a store: say { store }')
  const { store } = asGiven(Object(given) as Partial<SharedOptions>, STORE)
  if (store === undefined) return makeLimiter(policy, given as LimiterOptions)
  checkStore('store', store)
  return store[LIMITER](policy, given) as SharedLimiter
}

/**
 * The same for parts of the library, which make limiters when they need them.
 *
 * @param room otherwise than by default: to how many keys the table grows, what new keys without room share, and what says plans.
 */
export function makeLimiter<P extends Policy>(policy: P, options?: LimiterOptions, room?: InnerRoom): Limiter<AnswerOf<P>>
export function makeLimiter(policy: Policy, given: LimiterOptions = {}, inner: InnerRoom = {}): Limiter {
  const own = checkedPolicy(policy, 'policy', 'createLimiter')
  const options = checkOptions(given, OPTIONS, EXAMPLE, 'createLimiter()')
  const { maxKeys, clock, onFull = 'evict' } = options
  if (maxKeys !== undefined) checkInteger('maxKeys', maxKeys, 1, MOST_KEYS)
  if (clock !== undefined) checkClock(clock)
  if (onFull !== 'evict' && onFull !== 'deny') throw new PolicyError('OPTION_INVALID', 'onFull', onFull, "must be 'evict' or 'deny'")
  const { planFor: said, ...space } = inner
  const room = { maxKeys, ...space, denyWhenFull: onFull === 'deny' }
  const plans = checkedPlans(options, own)
  if (plans !== undefined) requireNoPermitPlans(plans, own)
  const parts = { room, planFor: said ?? (plans && ((level: Policy, key: string) => planFor(plans, level, key))), ...checkedSizes(options) }
  const limiter = layered(own, (each) => newMemoryLimiter(each, { ...parts, clock: clock ?? defaultClock(each) }), {
    ...options,
    policyFor: policyOfKey(options.policyFor),
    clock: clock ?? defaultClock(own),
  })
  return withQueue(limiter, clock ?? defaultClock(own))
}

/**
 * In a worker thread: the limiter of a handle, sharing its exact budget, policy and time. Lists and shadow travel too; what cannot
 * travel must be passed again: a custom clock, and any function given as `policyFor`, `allow` or `deny`. What a worker is given has lost
 * its type: say `attachLimiter<Permit>(workerData)` where takes answer with permits.
 *
 * @throws {PolicyError} `HANDLE_INVALID`, `CLOCK_INVALID` when a custom clock is missing, `OPTION_INVALID` when a function is.
 * @example
 * // main:   new Worker(file, { workerData: limiter.handle() })
 * // worker: const limiter = attachLimiter(workerData)
 */
export function attachLimiter<Answer extends Decision = Decision>(handle: LimiterHandle<Answer>, options?: AttachOptions): Limiter<Answer>
export function attachLimiter(handle: LimiterHandle, given: AttachOptions = {}): Limiter {
  const options = checkOptions(given, ATTACH_OPTIONS, EXAMPLE, 'attachLimiter()')
  const parts = { clock: options.clock, ...checkedSizes(options) }
  const clock = options.clock ?? clockFromHandle(checkedHandle(handle).clock)
  const layers = clock === undefined ? options : { ...options, clock }
  const limiter = attachedLayers(handle, (each) => attachedMemoryLimiter(each, parts), layers)
  return withQueue(limiter, clock)
}

/**
 * The limiter of a snapshot, in its own memory: what each key had spent is spent. The policy is the one in force when the
 * snapshot was taken; a clock has to read Unix time, as all of this library's do.
 *
 * Say `restoreLimiter<Permit>(bytes)` where takes answer with permits.
 *
 * @param options as of {@link createLimiter}; functions and lists do not travel in a snapshot. `maxKeys` and `onFull` are
 * those that the limiter was made with, also for policies that the snapshot does not know.
 * @throws {PolicyError} `SNAPSHOT_INVALID` when the bytes are damaged, of another version, or hold what no limiter holds.
 * @example
 * writeFileSync('limits.bin', limiter.snapshot())
 * const limiter = restoreLimiter(readFileSync('limits.bin'))
 */
export function restoreLimiter<Answer extends Decision = Decision>(
  snapshot: Uint8Array,
  options: RestoreOptions & { readonly overrides: true },
): Limiter<Answer> & WithOverrides
export function restoreLimiter<Answer extends Decision = Decision>(snapshot: Uint8Array, options?: RestoreOptions): Limiter<Answer>
export function restoreLimiter(snapshot: Uint8Array, given: RestoreOptions = {}): Limiter {
  const options = checkOptions(given, RESTORE_OPTIONS, EXAMPLE, 'restoreLimiter()')
  const { clock } = options
  if (clock !== undefined) checkClock(clock)
  const parts = checkedSizes(options)
  const make = (policy: Policy, like: Snapshot): Limiter =>
    newMemoryLimiter(policy, { ...parts, clock: clock ?? defaultClock(policy), room: optionsIn(like) })
  const restore = (each: Snapshot): Limiter => restoredMemoryLimiter(each, parts, (policy) => clock ?? defaultClock(policy))
  return withQueue(restoredLayers(snapshot, restore, make, options), clock)
}

function checkedSizes({ hotKeys = 0, maxWaiting = DEFAULT_MAX_WAITERS }: Pick<LimiterOptions, 'hotKeys' | 'maxWaiting'>): {
  hotKeys: number
  maxWaiting: number
} {
  checkedHotKeys(hotKeys)
  checkInteger('maxWaiting', maxWaiting, 0, MOST_WAITERS)
  return { hotKeys, maxWaiting }
}
