import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'
import { chained } from '../../../sluicegate/dist/awaitable.js'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import { type Receipt, type Receipting, TAKE, WAIT } from '../../../sluicegate/dist/decision/receipt.js'
import type { Key, WaitOptions } from '../../../sluicegate/dist/limiter.js'
import type { MiddlewareLimiter } from '../../../sluicegate/dist/middleware/middleware-options.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { QueueLimiter } from '../../../sluicegate/dist/queue/queue-options.js'

/** A limiter in memory or shared. */
export interface AnyLimiter extends QueueLimiter {
  peek(key: Key, cost?: number): Awaitable<Decision>
}

/** What a queue and middleware need of it. */
export type SettlingLimiter = MiddlewareLimiter & QueueLimiter & Receipting & { peek(key: Key, cost?: number): Promise<Decision> }

/** Faults of receipts that the histories have to find. */
export type ReceiptFault = 'without a bound' | 'to the account of now' | 'twice'

/**
 * The limiter of now, whose peeks come later, so that it is charged before limits behind it; with a fault, its receipts give back more than they may, or
 * to another account.
 */
export function settlingLimiter(now: () => AnyLimiter, fault?: ReceiptFault): SettlingLimiter {
  const own = (): AnyLimiter & Receipting => now() as AnyLimiter & Receipting
  const faulty = (key: Key, cost: number, receipt: Receipt): Receipt =>
    fault === undefined || !receipt.decision.allowed ? receipt : new FaultyReceipt(now, key, cost, receipt, fault)
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
    [TAKE]: (key: Key, cost = 1) => chained(own()[TAKE](key, cost), (receipt) => faulty(key, cost, receipt)),
    [WAIT]: (key: Key, options?: WaitOptions) =>
      own()
        [WAIT](key, options)
        .then((receipt) => faulty(key, options?.cost ?? 1, receipt)),
  }
}

class FaultyReceipt implements Receipt {
  readonly decision: Decision
  private readonly now: () => AnyLimiter
  private readonly key: Key
  private readonly cost: number
  private readonly receipt: Receipt
  private readonly fault: ReceiptFault
  private isOver = false
  private readonly chargedUnder: Policy

  constructor(now: () => AnyLimiter, key: Key, cost: number, receipt: Receipt, fault: ReceiptFault) {
    this.decision = receipt.decision
    this.now = now
    this.key = key
    this.cost = cost
    this.receipt = receipt
    this.fault = fault
    this.chargedUnder = this.policyNow
  }

  async settle(actualCost: number): Promise<unknown> {
    if (this.isOver) return undefined
    this.isOver = true
    const rest = this.cost - actualCost
    if (rest <= 0) return this.receipt.settle(actualCost)
    switch (this.fault) {
      case 'without a bound':
        return this.policyNow === this.chargedUnder ? this.now().refund(this.key, rest) : this.receipt.settle(actualCost)
      case 'to the account of now':
        return this.policyNow === this.chargedUnder ? this.receipt.settle(actualCost) : this.now().refund(this.key, rest)
      case 'twice':
        await this.receipt.settle(actualCost)
        return this.now().refund(this.key, 1)
    }
  }

  async cancel(): Promise<unknown> {
    return this.settle(0)
  }

  private get policyNow(): Policy {
    return this.now().policyOf?.(this.key) ?? this.now().policy
  }
}
