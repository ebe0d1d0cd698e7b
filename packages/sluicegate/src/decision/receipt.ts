import type { Awaitable } from '../awaitable.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Decision } from './decision.js'

/**
 * A decision, and the way back for what it charged: to the account that was charged, whatever policy the key has by then, and never more than is
 * safe (docs/waiting.md, "What is returned"). Of a decision that charged nothing (denied, `wouldDeny`, listed, made in an outage) both methods
 * change nothing. The first of them counts.
 */
export interface Receipt<Answer extends Decision = Decision> {
  readonly decision: Answer
  /** Below the cost the rest comes back; above it the account is charged, into debt if need be. */
  settle(actualCost: number): Awaitable<unknown>
  /** {@link settle} at 0. */
  cancel(): Awaitable<unknown>
}

/** The methods of a limiter of this library that return receipts: `take` and `wait`, at the cost of an object more. */
export const TAKE: unique symbol = Symbol.for('sluicegate.take')
export const WAIT: unique symbol = Symbol.for('sluicegate.wait')

/** A limiter of this library; `Taken` where takes answer at once. */
export interface Receipting<Answer extends Decision = Decision, Taken = Awaitable<Receipt<Answer>>> {
  [TAKE](key: Key, cost?: number): Taken
  [WAIT](key: Key, options?: WaitOptions): Promise<Receipt<Answer>>
}

/** The receipt of a decision that charged nothing. */
export function emptyReceipt<Answer extends Decision>(decision: Answer): Receipt<Answer> {
  return { decision, settle: () => undefined, cancel: () => undefined }
}

/** The same receipt with another decision. */
export function receiptWith<Answer extends Decision>(receipt: Receipt<Decision>, decision: Answer): Receipt<Answer> {
  if (receipt.decision === decision) return receipt as Receipt<Answer>
  return { decision, settle: (actualCost) => receipt.settle(actualCost), cancel: () => receipt.cancel() }
}
