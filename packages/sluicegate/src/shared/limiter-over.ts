import { PolicyError } from '../errors.js'
import { checkOptions } from '../options/option-checks.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { storedNames } from '../policy/stored-name.js'
import { preciseClock } from '../time/clock.js'
import { GIVEN_ONLY } from '../watch-options.js'
import { BackedLimiter, type BackedLimiterParts } from './backed-limiter.js'
import { CallGuard, ONE_PLACE } from './calls/call-guard.js'
import { layeredShared, type SharedMaker } from './layers/layered-shared.js'
import { OverrideCache } from './layers/override-cache.js'
import type { OpenStore, PolicyStore, StoreUse } from './open-store.js'
import { type LocalShare, newNodeId, shareCountedBy } from './outage/local-share.js'
import type { SharedLimiter } from './shared-limiter.js'
import { checkedTimeoutMs, checkSharedOptions, leasedHorizonMs, SHARED_OPTIONS, type SharedOptions } from './shared-options.js'
import { LIMITER, OPEN, type Store } from './store.js'

/** One kind of store. */
export interface StoreKind {
  readonly name: string
  /** Options of a limiter that it cannot have, each with what to do instead. */
  readonly refused?: { readonly [option in keyof SharedOptions]?: string }
  /** Whether it has no policies but those that were given to it elsewhere. */
  readonly givenOnly?: boolean
  open(use: StoreUse): OpenStore
}

/** Said of each, as nothing is to come from `Object.prototype`. */
const UNSAID = {
  crossSlot: undefined,
  region: undefined,
  isMadeLate: false,
  countNodes: undefined,
  countedShare: undefined,
  limiter: undefined,
}
const UNSAID_OPEN = { timeoutMs: undefined, overridesOf: undefined, besideMs: undefined, isKnownByName: false, created: undefined }
const ADVICE = "raise lease in all processes, or use mode 'exact'"

/**
 * A store, which brings the limiter over it along: what keeps everything in memory has none of this. A limiter over it is made this way:
 *
 * 1. `createLimiter` calls the store's `[LIMITER]`, which is `limiterOver`: it checks the options, and opens the store for this limiter.
 * 2. `layeredShared` calls `make` for the limiter's policy, and for each tier when that is needed, and puts the layers around them.
 * 3. `make` asks the opened store what it is under that policy (`PolicyStore`), and makes the {@link BackedLimiter} of it.
 */
export function storeOf(kind: StoreKind): Store & { readonly [GIVEN_ONLY]: boolean } {
  const { name, givenOnly = false, open } = kind
  return {
    name,
    [GIVEN_ONLY]: givenOnly,
    [OPEN]: open,
    [LIMITER]: (policy, options) => limiterOver(kind, policy, options as SharedOptions),
  }
}

/** @throws {PolicyError} before anything is made. */
function limiterOver({ name, refused = {}, open }: StoreKind, policy: Policy, given: SharedOptions): SharedLimiter {
  const own = checkedPolicy(policy, 'policy', 'createLimiter')
  const options = checkOptions(given, SHARED_OPTIONS, '{ store }', 'createLimiter() over a store')
  checkSharedOptions(options)
  for (const [option, mend] of Object.entries(refused)) {
    const value = options[option as keyof SharedOptions]
    if (value !== undefined) throw new PolicyError('OPTION_INVALID', option, value, mend)
  }
  const { clock = preciseClock(), timeout, ...others } = options
  const timeoutMs = checkedTimeoutMs(timeout)
  const opened: OpenStore = { ...UNSAID_OPEN, ...open({ clock, timeoutMs, hasPlans: typeof options.policyFor === 'object' }) }
  const whole = { ...others, clock, timeoutMs: opened.timeoutMs ?? timeoutMs }
  let id: string | undefined
  // Nothing random is made before it is needed: in Workers that is forbidden outside of requests.
  const idOf = (): string => (id ??= newNodeId())
  const make: SharedMaker['make'] = (each, override) => {
    const horizonMs = leasedHorizonMs(each, options)
    return limiterUnder({ ...UNSAID, ...opened.under(each, horizonMs, override) }, each, { ...whole, horizonMs }, idOf)
  }
  const overridesOf: SharedMaker['overridesOf'] = (staleMs, now) => {
    const kept = opened.overridesOf?.(own)
    if (kept === undefined)
      throw new PolicyError('OPTION_INVALID', 'overrides', options.overrides, `are not kept in ${name}: use policyFor`)
    return new OverrideCache(kept, new CallGuard(ONE_PLACE, clock, whole.timeoutMs), clock, staleMs, now, opened.besideMs)
  }
  const limiter = layeredShared(own, { make, overridesOf, clock, isKnownByName: opened.isKnownByName ?? false }, options)
  opened.created?.(limiter)
  return limiter
}

/** @param idOf names the limiter among those that share its policy. */
function limiterUnder(
  store: PolicyStore,
  policy: Policy,
  {
    clock,
    horizonMs,
    timeoutMs,
    ...options
  }: Omit<SharedOptions, 'timeout'> & Pick<BackedLimiterParts, 'clock' | 'horizonMs' | 'timeoutMs'>,
  idOf: () => string,
): BackedLimiter {
  const counted = (): LocalShare => shareCountedBy(store.countNodes, storedNames(policy), idOf, store.clock ?? clock)
  const parts: BackedLimiterParts = {
    clock,
    lateAdvice: ADVICE,
    ...store,
    horizonMs: store.horizonMs ?? horizonMs,
    policy,
    options,
    timeoutMs,
    countedShare: () => store.countedShare?.(counted) ?? counted(),
  }
  return store.limiter?.(parts) ?? new BackedLimiter(parts)
}
