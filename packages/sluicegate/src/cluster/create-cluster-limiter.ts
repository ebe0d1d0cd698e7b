import { checkedCost } from '../arguments.js'
import type { Awaitable } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import type { AnswerOf } from '../decision/permit.js'
import { emptyReceipt, type Receipt, TAKE } from '../decision/receipt.js'
import { PolicyError, StoreError } from '../errors.js'
import { keysUnder } from '../key.js'
import type { Key } from '../limiter.js'
import type { WithFleetOverrides } from '../overrides.js'
import { checkChange, checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { CallGuard } from '../shared/calls/call-guard.js'
import type { FleetLimiter } from '../shared/fleet-limiter.js'
import { layeredShared, type SharedMaker } from '../shared/layers/layered-shared.js'
import { OverrideCache } from '../shared/layers/override-cache.js'
import { GivenShare, UNKNOWN_SHARE } from '../shared/outage/local-share.js'
import { SharedLimiter } from '../shared/shared-limiter.js'
import { checkOptionNames, checkSharedOptions, SHARED_OPTIONS, type SharedOptions } from '../shared/shared-options.js'
import { type Clock, preciseClock } from '../time/clock.js'
import type { ParentChannel } from './channel.js'
import { ClusterBackend } from './cluster-backend.js'
import { ClusterOverrides } from './cluster-overrides.js'
import { overrideChannel } from './message.js'
import { PrimaryLink } from './primary-link.js'

/** What {@link createClusterLimiter} takes beside the policy. */
export interface ClusterLimiterOptions extends SharedOptions {
  /**
   * The channel to the primary.
   *
   * @defaultValue this `process`
   * @example createClusterLimiter(policy, { process })
   */
  readonly process?: ParentChannel
  /**
   * For leases, waits and timeouts. It need not agree with the primary's clock.
   *
   * @defaultValue `preciseClock()`
   * @example createClusterLimiter(policy, { clock: manualClock() })
   */
  readonly clock?: Clock
}

const OPTIONS: ReadonlySet<string> = new Set(['process', 'clock', ...SHARED_OPTIONS] satisfies (keyof ClusterLimiterOptions)[])
const ONE_PRIMARY = { serverOf: () => undefined, slotOf: () => undefined }

/**
 * Creates, in a process that was started with a channel, the limiter that the other process serves under this policy's name with
 * {@link serveLimiter}. The primary's policy counts; the numbers given here count until the primary answers. `update` asks the primary to
 * change the policy for all processes.
 *
 * Its listener keeps the process alive until `close()`, and for up to 5 s after it while a request is on its way.
 *
 * @throws {PolicyError} `OPTION_INVALID` when this process has no channel, `NAME_INVALID` when it has a limiter of that name already, and on
 * an unknown option or one out of range.
 * @example
 * const limiter = createClusterLimiter(tokenBucket({ limit: 100, window: '1s', name: 'api' }))
 * const { allowed } = await limiter.take('user:42')
 */
export function createClusterLimiter<P extends Policy>(
  policy: P,
  options: ClusterLimiterOptions & { readonly overrides: true | { readonly staleMs?: number } },
): FleetLimiter<AnswerOf<P> & Decision> & WithFleetOverrides
export function createClusterLimiter<P extends Policy>(policy: P, options?: ClusterLimiterOptions): FleetLimiter<AnswerOf<P> & Decision>
export function createClusterLimiter(policy: Policy, given: ClusterLimiterOptions = {}): FleetLimiter {
  const options = checkOptionNames(given, OPTIONS, '{ timeoutMs: 100 }', undefined, 'createClusterLimiter()')
  checkSharedOptions(options)
  const { process: channel = globalThis.process, clock = preciseClock(), timeoutMs = 100 } = options
  if (typeof channel?.send !== 'function' || typeof channel.on !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'process', channel, 'has no channel: it must have been started by fork() or by node:cluster')
  }
  const own = checkedPolicy(policy, 'policy', 'createClusterLimiter')
  const linkOf = (name: string): PrimaryLink => new PrimaryLink({ channel, name, clock })
  const ownLink = linkOf(own.name)
  const make: SharedMaker['make'] = (each) => limiterOver(each === own ? ownLink : linkOf(each.name), each, options, clock)
  const overridesOf: SharedMaker['overridesOf'] = (staleMs, now) =>
    new OverrideCache(new ClusterOverrides(ownLink), new CallGuard(ONE_PRIMARY, clock, timeoutMs), clock, staleMs, now)
  const makeOverride: SharedMaker['makeOverride'] = ({ policy: each, content }) =>
    limiterOver(linkOf(overrideChannel(own.name, content)), each, options, clock)
  return layeredShared(own, { make, makeOverride, overridesOf, clock, isKnownByName: true }, options)
}

function limiterOver(link: PrimaryLink, policy: Policy, options: ClusterLimiterOptions, clock: Clock): FleetLimiter {
  const limiter = new ClusterLimiter(link, policy, options, clock)
  link.open((...terms) => limiter.agree(...terms))
  return limiter
}

/** A shared limiter whose policy is the primary's. */
class ClusterLimiter extends SharedLimiter {
  private readonly link: PrimaryLink
  private readonly counted: GivenShare
  private terms = ''
  private readonly heard: Promise<void>
  private hear: () => void = () => undefined
  /** Whether the first terms came, which earlier takes wait for; or did not come in time, and are no longer waited for. */
  private isGreeted = false
  private greeting: Promise<void> | undefined

  /** Nothing is leased until the primary sends its terms. */
  constructor(link: PrimaryLink, policy: Policy, options: ClusterLimiterOptions, clock: Clock) {
    const counted = new GivenShare(UNKNOWN_SHARE)
    super({
      policy,
      connect: (each) => new ClusterBackend(link, each),
      places: ONE_PRIMARY,
      options,
      countedShare: () => counted,
      horizonMs: 0,
      lateAdvice: "raise lease.horizonMs of serveLimiter, or use its mode 'exact'",
      clock,
    })
    this.link = link
    this.counted = counted
    this.heard = new Promise((resolve) => {
      this.hear = resolve
    })
  }

  /** Takes before the primary's terms wait for these, so that they share one lease. */
  override take(key: Key, cost = 1): Awaitable<Decision> {
    return this.isGreeted ? super.take(key, cost) : this.onceGreeted(key, cost, () => super.take(key, cost), same)
  }

  override [TAKE](key: Key, cost = 1): Awaitable<Receipt> {
    return this.isGreeted ? super[TAKE](key, cost) : this.onceGreeted(key, cost, () => super[TAKE](key, cost), emptyReceipt)
  }

  /** Applies the primary's terms. Terms that are invalid change nothing. */
  agree(policy: unknown, horizonMs: unknown, workers: unknown): void {
    if (Number.isSafeInteger(workers) && (workers as number) > 0) this.counted.setNodes(workers as number)
    const terms = JSON.stringify([policy, horizonMs])
    this.isGreeted = true
    this.hear()
    if (terms === this.terms || typeof horizonMs !== 'number' || !(horizonMs >= 0 && horizonMs <= 10_000)) return
    try {
      const next = checkedPolicy(policy)
      checkChange(this.policy, next)
      this.changeTo(next, horizonMs)
      this.terms = terms
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error
      this.link.giveUp(`the primary has another policy of this name: ${error.message}`)
    }
  }

  override update(policy: Policy): void {
    this.checkOpen()
    const next = checkedPolicy(policy)
    checkChange(this.policy, next)
    this.link.tell('update', next)
  }

  override close(): void {
    super.close()
    this.link.close()
    this.hear()
  }

  /** @param undecided what it returns for a decision without the primary, whose terms did not come in time. */
  private async onceGreeted<Taken>(
    key: Key,
    cost: number,
    take: () => Awaitable<Taken>,
    undecided: (decision: Decision) => Taken,
  ): Promise<Taken> {
    this.checkOpen()
    keysUnder(this.policy, key)
    const tokens = checkedCost(cost)
    this.greeting ??= this.guard.guarded('', () => this.heard)
    try {
      await this.greeting
    } catch (error) {
      this.isGreeted = true
      if (!(error instanceof StoreError)) throw error
      return undecided(this.record(key, tokens, this.parts.fallback.without(key, tokens)))
    }
    return take()
  }
}

function same(decision: Decision): Decision {
  return decision
}
