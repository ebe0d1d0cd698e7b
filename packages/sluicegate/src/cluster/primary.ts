import { checkedCost } from '../arguments.js'
import type { Awaitable, When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { type Reservation, TAKE, uncharged } from '../decision/reservation.js'
import { PolicyError, StoreError } from '../errors.js'
import { isByName, type KeysByName, keysUnder, ownKey } from '../key.js'
import type { Key } from '../limiter.js'
import { checkOptions } from '../options/option-checks.js'
import { LinkBackend } from '../owner/link-backend.js'
import { overrideChannel } from '../owner/message.js'
import { checkChange, checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { BackedLimiter, type BackedLimiterParts } from '../shared/backed-limiter.js'
import { newOperationId } from '../shared/backend.js'
import { ONE_PLACE } from '../shared/calls/call-guard.js'
import { storeOf } from '../shared/limiter-over.js'
import type { OpenStore, PolicyStore } from '../shared/open-store.js'
import { GivenShare, UNKNOWN_SHARE } from '../shared/outage/local-share.js'
import type { Store } from '../shared/store.js'
import type { Clock } from '../time/clock.js'
import type { ParentChannel } from './channel.js'
import { ClusterOverrides } from './cluster-overrides.js'
import { PrimaryLink } from './primary-link.js'

/** What {@link primary} takes. */
export interface PrimaryOptions {
  /**
   * The channel to the primary.
   *
   * @defaultValue this `process`
   * @example primary({ process })
   */
  readonly process?: ParentChannel
}

const OPTIONS: readonly string[] = ['process'] satisfies (keyof PrimaryOptions)[]
const SAY_THERE = "is the primary's: give it to serveLimiter"

/**
 * In a process that was started with a channel: the other process, which serves policies with {@link serveLimiter}, as the store of limiters.
 * The primary's policy of a limiter's name counts; the numbers given here count until the primary answers. `update` asks the primary to change
 * the policy for all processes.
 *
 * The listener of a limiter keeps the process alive until `close()`, and for up to 5 s after it while a request is on its way. A second limiter
 * of one name is refused, with `NAME_INVALID`.
 *
 * @throws {PolicyError} `OPTION_INVALID` when this process has no channel.
 * @example
 * const limiter = createLimiter(tokenBucket({ limit: 100, window: '1s', name: 'api' }), { store: primary() })
 * const { allowed } = await limiter.take('user:42')
 */
export function primary(options: PrimaryOptions = {}): Store {
  const { process: channel = globalThis.process } = checkOptions(options, OPTIONS, '{ process }', 'primary()')
  if (typeof channel?.send !== 'function' || typeof channel.on !== 'function') {
    throw new PolicyError('OPTION_INVALID', 'process', channel, 'has no channel: it must have been started by fork() or by node:cluster')
  }
  return storeOf({
    name: 'primary',
    refused: { mode: SAY_THERE, lease: SAY_THERE },
    givenOnly: true,
    open: ({ clock, hasPlans }) => openedAt(channel, clock, hasPlans === true),
  })
}

function openedAt(channel: ParentChannel, clock: Clock, hasPlans: boolean): OpenStore {
  /** Of the limiter's own policy, which is the first. */
  let own: OwnPolicy | undefined
  return {
    isKnownByName: true,
    overridesOf: () => new ClusterOverrides((own as OwnPolicy).link),
    under: ({ name: each }, _horizonMs, override) => {
      if (hasPlans && own !== undefined) return underPlans(own)
      const name = override === undefined ? each : overrideChannel(own?.name ?? each, override.content)
      const link = new PrimaryLink(channel, name, clock)
      const made: OwnPolicy = { name, link, counted: new GivenShare(UNKNOWN_SHARE), limiter: undefined }
      own ??= made
      return {
        places: ONE_PLACE,
        // Nothing is leased until the primary sends its terms.
        horizonMs: 0,
        lateAdvice: "raise lease of serveLimiter, or use its mode 'exact'",
        connect: (policy) => new LinkBackend(link, policy),
        limiter: (parts) => {
          made.limiter = new ClusterLimiter(link, parts, made.counted)
          return made.limiter
        },
      }
    },
  }
}

/** What a limiter has for its own policy. */
interface OwnPolicy {
  readonly name: string
  readonly link: PrimaryLink
  readonly counted: GivenShare
  limiter: ClusterLimiter | undefined
}

/** Plans of its levels: each call says them, and nothing is leased. */
function underPlans({ link, counted, limiter }: OwnPolicy): PolicyStore {
  return {
    places: ONE_PLACE,
    horizonMs: 0,
    connect: (policy) => new LinkBackend(link, policy, limiter?.policy),
    countedShare: () => counted,
  }
}

/** A shared limiter whose policy is the primary's. */
class ClusterLimiter extends BackedLimiter {
  private readonly link: PrimaryLink
  private readonly counted: GivenShare
  private terms = ''
  private readonly heard: Promise<void>
  private hear: () => void = () => undefined
  /** Whether the first terms came, which earlier takes wait for; or did not come in time, and are no longer waited for. */
  private isGreeted = false
  private greeting: Promise<void> | undefined

  constructor(link: PrimaryLink, parts: BackedLimiterParts, counted: GivenShare) {
    super({ ...parts, countedShare: () => counted })
    this.link = link
    this.counted = counted
    this.heard = new Promise((resolve) => {
      this.hear = resolve
    })
    link.open((...terms) => this.agree(...terms))
  }

  /** Takes before the primary's terms wait for these, so that they share one lease. */
  override take(key: Key | KeysByName, cost = 1): Awaitable<Decision> {
    return this.isGreeted ? super.take(key, cost) : this.onceGreeted(key, cost, (own) => super.take(own, cost), same)
  }

  override [TAKE](key: Key | KeysByName, cost = 1): Awaitable<Reservation<When>> {
    return this.isGreeted ? super[TAKE](key, cost) : this.onceGreeted(key, cost, (own) => super[TAKE](own, cost), uncharged)
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
    this.link.tell([newOperationId(), 'update', next])
  }

  override close(): void {
    super.close()
    this.link.close()
    this.hear()
  }

  /** @param undecided what it returns for a decision without the primary, whose terms did not come in time. */
  private async onceGreeted<Taken>(
    given: Key | KeysByName,
    cost: number,
    take: (own: Key | KeysByName) => Awaitable<Taken>,
    undecided: (decision: Decision) => Taken,
  ): Promise<Taken> {
    this.checkOpen()
    // The names stay: the primary may have the levels in another order.
    const own = isByName(given) ? { ...given } : ownKey(given)
    const key = this.inOrder(own)
    keysUnder(this.policy, key)
    const tokens = checkedCost(cost)
    this.greeting ??= this.guard.guarded('', () => this.heard)
    try {
      await this.greeting
    } catch (error) {
      this.isGreeted = true
      if (!(error instanceof StoreError)) throw error
      return undecided(this.record(key, tokens, this.now.fallback.takeWithout(key, tokens)))
    }
    return take(own)
  }
}

function same(decision: Decision): Decision {
  return decision
}
