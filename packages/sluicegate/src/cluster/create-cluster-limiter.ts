import { keysUnder } from '../all-of-keys.js'
import { checkedCost } from '../arguments.js'
import type { Awaitable } from '../awaitable.js'
import { type Clock, preciseClock } from '../clock.js'
import type { Decision } from '../decision.js'
import { PolicyError, StoreError } from '../errors.js'
import { CallGuard } from '../fleet/call-guard.js'
import type { FleetLimiter } from '../fleet/fleet-limiter.js'
import { checkFleetOptions, checkOptionNames, FLEET_OPTIONS, type FleetOptions } from '../fleet/fleet-options.js'
import { type FleetPorts, partsOver } from '../fleet/fleet-parts.js'
import { LateAnswers } from '../fleet/late-answers.js'
import { type FleetMaker, layeredFleet } from '../fleet/layers/fleet-layers.js'
import { OverrideCache } from '../fleet/layers/override-cache.js'
import { StoreLimiter, type StoreLimiterParts } from '../fleet/store-limiter.js'
import { leaseUsOf } from '../lease/leasing.js'
import type { Key } from '../limiter.js'
import type { WithFleetOverrides } from '../overrides.js'
import type { AnswerOf } from '../permit.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { checkChange } from '../policy/policy-change.js'
import { ClusterAuthority } from './cluster-authority.js'
import { ClusterOverrides } from './cluster-overrides.js'
import { ClusterVerbs } from './cluster-verbs.js'
import { overrideChannel } from './message.js'
import { PrimaryLink } from './primary-link.js'
import type { ParentChannel } from './worker-process.js'

/** What {@link createClusterLimiter} takes beside the policy. */
export interface ClusterLimiterOptions extends FleetOptions {
  /** The end of the channel to the primary; default this `process`. */
  readonly process?: ParentChannel
  /** Times leases, waits and time-outs; default `preciseClock()`. It need not agree with that of the primary. */
  readonly clock?: Clock
}

const OPTIONS: ReadonlySet<string> = new Set(['process', 'clock', ...FLEET_OPTIONS] satisfies (keyof ClusterLimiterOptions)[])
const ONE_PRIMARY = { serverOf: () => undefined, slotOf: () => undefined }

/**
 * In a process that was started with a channel: the limiter that the process at its other end serves, by {@link serveLimiter}, under the name
 * of this policy. Its numbers there are what counts: this policy's are for as long as nobody is heard from. `update` asks the primary to
 * change the policy for all.
 *
 * Listening keeps the process alive, as every listener for messages does, until `close()`, and for 5 s after it at most while something that
 * was asked is on its way.
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
export function createClusterLimiter(policy: Policy, options: ClusterLimiterOptions = {}): FleetLimiter {
  checkOptionNames(options, OPTIONS, '{ timeoutMs: 100 }', undefined, 'createClusterLimiter()')
  checkFleetOptions(options)
  const { process: channel = globalThis.process, clock = preciseClock(), timeoutMs = 100 } = options
  if (typeof channel?.send !== 'function' || typeof channel.on !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'process', channel, 'has no channel: it must have been started by fork() or by node:cluster')
  }
  const own = checkedPolicy(policy, 'policy', 'createClusterLimiter')
  const linkOf = (name: string): PrimaryLink => new PrimaryLink({ channel, name, clock })
  const ownLink = linkOf(own.name)
  const make: FleetMaker['make'] = (each) => limiterOver(each === own ? ownLink : linkOf(each.name), each, options, clock)
  const overridesOf: FleetMaker['overridesOf'] = (staleMs, now) =>
    new OverrideCache(new ClusterOverrides(ownLink), new CallGuard(ONE_PRIMARY, clock, timeoutMs), clock, staleMs, now)
  const makeOverride: FleetMaker['makeOverride'] = ({ policy: each, content }) =>
    limiterOver(linkOf(overrideChannel(own.name, content)), each, options, clock)
  return layeredFleet(own, { make, makeOverride, overridesOf, clock, isKnownByName: true }, options)
}

function limiterOver(link: PrimaryLink, policy: Policy, options: ClusterLimiterOptions, clock: Clock): FleetLimiter {
  const { process: _, timeoutMs = 100, ...settings } = options
  const guard = new CallGuard(ONE_PRIMARY, clock, timeoutMs)
  const late = new LateAnswers("raise lease.horizonMs of serveLimiter, or use its mode 'exact'")
  let horizonMs = 0
  const ports: FleetPorts = {
    guard,
    late,
    isTogether: () => true,
    verbsOf: (each, _, leases) =>
      new ClusterVerbs({ guard, link, policy: each, clock, isLeased: leases !== undefined, leaseUs: () => leaseUsOf(horizonMs) }),
    authoritiesOf: (each) => (each.policies ?? [each]).map((part, i) => new ClusterAuthority(guard, link, part, i)),
  }
  const partsFor: PartsFor = (each, nextHorizonMs, without) => {
    horizonMs = nextHorizonMs
    return partsOver(ports, each, { ...settings, clock, horizonMs }, () => limiter, without)
  }
  const limiter: ClusterLimiter = new ClusterLimiter(link, guard, policy, partsFor)
  link.open((next, nextHorizonMs) => limiter.agree(next, nextHorizonMs))
  return limiter
}

/** @param without what decides in an outage, if it did so before. */
type PartsFor = (policy: Policy, horizonMs: number, without?: StoreLimiterParts['outage']) => StoreLimiterParts

/** What is different when the policy is another process's. */
class ClusterLimiter extends StoreLimiter {
  private readonly link: PrimaryLink
  private readonly guard: CallGuard
  private readonly partsFor: PartsFor
  private terms = ''
  private readonly heard: Promise<void>
  private hear: () => void = () => undefined
  /** Whether the first terms are here, which those who come before them wait for; or were not here in time, and are not waited for again. */
  private isGreeted = false
  private greeting: Promise<void> | undefined

  /** Nothing is leased until the primary says what is. */
  constructor(link: PrimaryLink, guard: CallGuard, policy: Policy, partsFor: PartsFor) {
    super(partsFor(policy, 0))
    this.link = link
    this.guard = guard
    this.partsFor = partsFor
    this.heard = new Promise((resolve) => {
      this.hear = resolve
    })
  }

  /** Who comes before the primary has said what is leased waits for that, so that all who do share what is then fetched. */
  override take(key: Key, cost = 1): Awaitable<Decision> {
    return this.isGreeted ? super.take(key, cost) : this.takeOnceGreeted(key, cost)
  }

  /** The primary has said what holds. What cannot be understood changes nothing. */
  agree(policy: unknown, horizonMs: unknown): void {
    const terms = JSON.stringify([policy, horizonMs])
    this.isGreeted = true
    this.hear()
    if (terms === this.terms || typeof horizonMs !== 'number' || !(horizonMs >= 0 && horizonMs <= 10_000)) return
    try {
      const next = checkedPolicy(policy)
      checkChange(this.policy, next)
      const { outage } = this.parts
      outage.update(next)
      this.changeTo(this.partsFor(next, horizonMs, outage))
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

  private async takeOnceGreeted(key: Key, cost: number): Promise<Decision> {
    this.checkOpen()
    keysUnder(this.policy, key)
    const tokens = checkedCost(cost)
    this.greeting ??= this.guard.guarded('', () => this.heard)
    try {
      await this.greeting
    } catch (error) {
      this.isGreeted = true
      if (!(error instanceof StoreError)) throw error
      return this.toldLater(key, tokens, Promise.resolve(this.calls.without(key, tokens)))
    }
    return super.take(key, cost)
  }
}
