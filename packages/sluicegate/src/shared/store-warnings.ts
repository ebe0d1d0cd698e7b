import type { StoreError } from '../errors.js'
import { onceInProcess } from '../once-in-process.js'

/** After a stall of this process all answers are late, which says nothing about the network unless it goes on for this many leases. */
const LATE_LEASES = 10
const LATE_IN_A_ROW = 3

/** Whether this process has warned. */
const warned = /* @__PURE__ */ onceInProcess('warned of late answers', () => ({ isTold: false }))

type Warn = (message: string) => void

/**
 * Answers whose tokens had expired when they came. Several in a row mean that the network is slower than a lease is long: the process warns
 * once.
 */
export class LateAnswers {
  count = 0
  private inARow = 0
  private sinceUs = 0
  private readonly mend: string
  private readonly warn: Warn

  /** @param mend what to do about it, for the warning. */
  constructor(mend: string, warn: Warn = warnOnce) {
    this.mend = mend
    this.warn = warn
  }

  /** @param leaseUs the length of a lease. */
  answered(isLate: boolean, nowUs: number, leaseUs: number): void {
    this.inARow = isLate ? this.inARow + 1 : 0
    if (!isLate) return
    if (this.inARow === 1) this.sinceUs = nowUs
    this.count++
    if (this.inARow < LATE_IN_A_ROW || nowUs - this.sinceUs < LATE_LEASES * leaseUs) return
    this.inARow = 0
    this.warn(
      `answers take longer than a lease of ${leaseUs / 1000} ms, so that nothing they give can be spent: ${this.mend}; see node_modules/sluicegate/docs/outages.md`,
    )
  }
}

function warnOnce(message: string): void {
  if (warned.isTold) return
  warned.isTold = true
  globalThis.process?.emitWarning?.(message, { type: 'SluicegateWarning', code: 'SLUICEGATE_SLOW_STORE' })
}

/** The answer of a primary that does not serve a policy of this name. */
const NAME_UNKNOWN = 'NAME_UNKNOWN'

/** Whether this process has warned. */
const warnedOfSilence = /* @__PURE__ */ onceInProcess('warned of a silent store', () => ({ isTold: false }))

/** Warns once when a circuit opens before the store has ever answered: usually the client is not connected, or to another host. */
export function warnOfSilence({ message }: StoreError): void {
  // It answers, and its answer says what is wrong.
  if (warnedOfSilence.isTold || message.includes(NAME_UNKNOWN)) return
  warnedOfSilence.isTold = true
  const mend = 'until it answers the option outage decides; is the client connected, and to the right server?'
  globalThis.process?.emitWarning?.(`${message}, and nothing it was asked was ever answered: ${mend}`, {
    type: 'SluicegateWarning',
    code: 'SLUICEGATE_SILENT_STORE',
  })
}
