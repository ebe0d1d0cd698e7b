import type { StoreError } from '../errors.js'
import { onceInProcess } from '../once-in-process.js'

/** A process that was stopped finds all answers late that came meanwhile: that says nothing of the store, unless it goes on for so many leases. */
const LATE_LEASES = 10
const LATE_IN_A_ROW = 3

/** Whether this process was told. */
const warned = /* @__PURE__ */ onceInProcess('warned of late answers', () => ({ isTold: false }))

type Warn = (message: string) => void

/**
 * Answers that came too late for what they gave to be spent. When several in a row do, a network is slower than a lease is long: the process is
 * warned of it, once.
 */
export class LateAnswers {
  count = 0
  private inARow = 0
  private sinceUs = 0
  private readonly mend: string
  private readonly warn: Warn

  /** @param mend what to do about it. */
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

/** What a primary answers that serves no policy of the name. */
const NAME_UNKNOWN = 'NAME_UNKNOWN'

/** Whether this process was told. */
const warnedOfSilence = /* @__PURE__ */ onceInProcess('warned of a silent store', () => ({ isTold: false }))

/** Warns once of a store that was given up before it ever answered: as a rule the client is not connected, or to somewhere else. */
export function warnOfSilence({ message }: StoreError): void {
  // It answers, and says by itself what is wrong.
  if (warnedOfSilence.isTold || message.includes(NAME_UNKNOWN)) return
  warnedOfSilence.isTold = true
  const mend = 'until it answers the option outage decides; is the client connected, and to the right server?'
  globalThis.process?.emitWarning?.(`${message}, and nothing it was asked was ever answered: ${mend}`, {
    type: 'SluicegateWarning',
    code: 'SLUICEGATE_SILENT_STORE',
  })
}
