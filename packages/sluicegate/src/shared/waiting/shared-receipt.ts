import type { Decision } from '../../decision/decision.js'
import type { Receipt } from '../../decision/receipt.js'

/** The ways to the account that a take has charged. */
export interface ChargedAccount {
  /** Gives back as much of `tokens` as is safe. */
  giveBack(tokens: number): Promise<unknown>
  /** Charges `tokens` more, into debt if need be. */
  charge(tokens: number): Promise<unknown>
}

/** The receipt of a take at a backend, or from a lease. A change that rejects may have been made, and is not repeated. */
export class SharedReceipt<Answer extends Decision = Decision> implements Receipt<Answer> {
  readonly decision: Answer
  private readonly cost: number
  private account: ChargedAccount | undefined

  constructor(decision: Answer, cost: number, account: ChargedAccount) {
    this.decision = decision
    this.cost = cost
    this.account = account
  }

  settle(actualCost: number): Promise<unknown> | undefined {
    const { account, cost } = this
    this.account = undefined
    if (actualCost > cost) return account?.charge(actualCost - cost)
    return actualCost < cost ? account?.giveBack(cost - actualCost) : undefined
  }

  cancel(): Promise<unknown> | undefined {
    return this.settle(0)
  }
}
