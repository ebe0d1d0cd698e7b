import type { Awaitable, When } from '../../../sluicegate/dist/awaitable.js'
import { chained } from '../../../sluicegate/dist/awaitable.js'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import { type Reservation, type Settling, TAKE, WAIT } from '../../../sluicegate/dist/decision/reservation.js'
import type { Key, WaitOptions } from '../../../sluicegate/dist/limiter.js'
import type { MiddlewareLimiter } from '../../../sluicegate/dist/middleware/middleware-options.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { QueueLimiter } from '../../../sluicegate/dist/queue/queue-options.js'

/** A limiter in memory or shared. */
export interface AnyLimiter extends QueueLimiter {
  peek(key: Key, cost?: number): Awaitable<Decision>
}

/** What a queue and middleware need of it. */
export type SettlingLimiter = MiddlewareLimiter & QueueLimiter & Settling & { peek(key: Key, cost?: number): Promise<Decision> }

/** Faults of settling that the histories have to find. */
export type SettlingFault = 'without a bound' | 'to the account of now' | 'twice'

/**
 * The limiter of now, whose peeks come later, so that it is charged before limits behind it; with a fault, what it charged gives back more than they may, or
 * to another account.
 */
export function settlingLimiter(now: () => AnyLimiter, fault?: SettlingFault): SettlingLimiter {
  const own = (): AnyLimiter & Settling => now() as AnyLimiter & Settling
  const faulty = (key: Key, cost: number, reservation: Reservation<When>): Reservation<When> =>
    fault === undefined || !reservation.decision.allowed ? reservation : new FaultyReservation(now, key, cost, reservation, fault)
  return {
    get policy() {
      return now().policy
    },
    policyOf: (key: Key): Policy => now().policyOf?.(key) ?? now().policy,
    take: (key, cost) => now().take(key, cost),
    peek: async (key, cost) => now().peek(key, cost),
    wait: (key, options) => now().wait(key, options),
    refund: (key, tokens) => now().refund(key, tokens),
    penalize: (key, tokens) => now().penalize(key, tokens),
    [TAKE]: (key: Key, cost = 1) => chained(own()[TAKE](key, cost), (reservation) => faulty(key, cost, reservation)),
    [WAIT]: (key: Key, options?: WaitOptions) =>
      own()
        [WAIT](key, options)
        .then((reservation) => faulty(key, options?.cost ?? 1, reservation)),
  }
}

class FaultyReservation implements Reservation<When> {
  readonly allowed = true
  readonly waitMs = 0
  readonly decision: Decision
  private readonly now: () => AnyLimiter
  private readonly key: Key
  private readonly cost: number
  private readonly reservation: Reservation<When>
  private readonly fault: SettlingFault
  private isOver = false
  private readonly chargedUnder: Policy

  constructor(now: () => AnyLimiter, key: Key, cost: number, reservation: Reservation<When>, fault: SettlingFault) {
    this.decision = reservation.decision
    this.now = now
    this.key = key
    this.cost = cost
    this.reservation = reservation
    this.fault = fault
    this.chargedUnder = this.policyNow
  }

  async settle(actualCost: number): Promise<Decision> {
    if (this.isOver) return this.decision
    this.isOver = true
    const rest = this.cost - actualCost
    if (rest <= 0) return this.reservation.settle(actualCost)
    switch (this.fault) {
      case 'without a bound':
        return this.policyNow === this.chargedUnder ? this.now().refund(this.key, rest) : this.reservation.settle(actualCost)
      case 'to the account of now':
        return this.policyNow === this.chargedUnder ? this.reservation.settle(actualCost) : this.now().refund(this.key, rest)
      case 'twice':
        await this.reservation.settle(actualCost)
        return this.now().refund(this.key, 1)
    }
  }

  async cancel(): Promise<Decision> {
    return this.settle(0)
  }

  private get policyNow(): Policy {
    return this.now().policyOf?.(this.key) ?? this.now().policy
  }
}
