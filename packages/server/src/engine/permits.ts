import type { Decision, Key, Permit } from 'sluicegate'
import { type Awaitable, whenDone } from './awaitable.js'
import { HeldById } from './held-by-id.js'
import type { AskedPriority } from './priorities.js'
import { nameOf } from './reservations.js'
import type { ServedPolicy } from './served-policy.js'
import { otherSlotOf, type Peers } from './shared-limiter.js'

const MAX_PERMITS = 1_000_000
const MAX_PERMITS_PER_KEY = 100_000

/** A permit in memory or at a store. */
type AnyPermit = Decision & { release(): Awaitable<boolean>; heartbeat(): Awaitable<boolean> }

interface HeldPermit {
  readonly permit: AnyPermit
  /** The time for which a heartbeat renews it. */
  readonly ttlMs: number
}

/** The answer to a take under a policy with concurrency. */
export interface PermitTaken {
  readonly decision: Decision
  /** For {@link Permits.release} and {@link Permits.heartbeat}; undefined when it is denied. */
  readonly id: string | undefined
  /** The time after which the permit ends without a heartbeat. */
  readonly ttlMs: number
}

/** Permits of concurrency that clients hold over the wire, by id. A client that disappears loses its permits after their time. */
export class Permits {
  readonly #held: HeldById<HeldPermit>
  readonly #peers: Peers | undefined

  constructor(nowMs: () => number, peers?: Peers) {
    this.#peers = peers
    const bounds = { what: 'permits', max: MAX_PERMITS, maxPerKey: MAX_PERMITS_PER_KEY, slot: peers?.slot }
    this.#held = new HeldById(bounds, nowMs, ({ permit }) => letGo(permit))
  }

  get size(): number {
    return this.#held.size
  }

  /** Permits that ended without a release since the service started. */
  get expired(): number {
    return this.#held.expired
  }

  /**
   * Takes a permit for `ttlMs`, at most the time of the policy, which is the default.
   *
   * @throws {TooManyHeldError} when too many are held. Also what a take throws.
   */
  take(
    policy: ServedPolicy,
    key: Key,
    cost: number,
    wantedMs = Number.POSITIVE_INFINITY,
    priority?: AskedPriority,
  ): Awaitable<PermitTaken> {
    const keyName = nameOf(policy, key)
    this.#held.requireRoom(keyName)
    const ttlMs = Math.min(wantedMs, policy.permitMs)
    return whenDone(policy.take(key, cost, priority), (decision) => {
      const permit = decision as Permit
      return { decision, ttlMs, id: decision.allowed ? this.#held.add(keyName, { permit, ttlMs }, ttlMs) : undefined }
    }) as Awaitable<PermitTaken>
  }

  /** Releases a permit. False if it has ended before. */
  release(id: string): Awaitable<boolean> {
    const other = this.#peers && otherSlotOf(id, this.#peers)
    if (other !== undefined) return this.#elsewhere(other, 'release', id)
    return this.#held.remove(id)?.permit.release() ?? false
  }

  /** Renews a permit for its time from now. False if it has ended. */
  heartbeat(id: string): Awaitable<boolean> {
    const other = this.#peers && otherSlotOf(id, this.#peers)
    if (other !== undefined) return this.#elsewhere(other, 'heartbeat', id)
    const held = this.#held.get(id)
    if (held === undefined) return false
    return whenDone(held.permit.heartbeat(), (isHeld) => {
      if (isHeld) return this.#held.renew(id, held.ttlMs)
      this.#held.remove(id)
      return false
    }) as Awaitable<boolean>
  }

  async #elsewhere(slot: number, verb: 'release' | 'heartbeat', id: string): Promise<boolean> {
    return (await this.#peers?.call<boolean>(slot, verb, id)) ?? false
  }

  /** Ends permits whose time is over. False: there is more. */
  sweep(): boolean {
    return this.#held.sweep()
  }
}

function letGo(permit: AnyPermit): void {
  try {
    // It ends by itself after the time of the policy.
    Promise.resolve(permit.release()).catch(() => undefined)
  } catch {}
}
