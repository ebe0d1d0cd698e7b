import { partsOf } from '../key.js'
import type { Key } from '../limiter.js'
import type { CallGuard } from '../shared/calls/call-guard.js'

/** More calls that wait for the home are not made. */
const MOST_WAITING = 10_000
/** How many follow one answer of the home, each of which brings others. */
const AT_ONCE = 4

/**
 * What is known of the link to the home. While a call failed and none was answered since, takes do not wait for it: a call beside them looks
 * whether it is back.
 */
export class HomeWatch {
  private readonly guard: Pick<CallGuard, 'isSound' | 'pausedMs' | 'openCircuits'>
  private readonly waiting: (() => Promise<unknown>)[] = []
  private isProbing = false

  constructor(guard: Pick<CallGuard, 'isSound' | 'pausedMs' | 'openCircuits'>) {
    this.guard = guard
  }

  /** @param isSure only where several calls failed in a row: for what nothing else can decide. */
  isOut(key: Key, isSure: boolean): boolean {
    if (isSure && this.guard.openCircuits === 0) return false
    for (const own of partsOf(key)) if (!this.guard.isSound(own)) return true
    return false
  }

  /** Calls the home about a key, unless a call looks for it already or it was called a moment ago. */
  probe(key: Key, call: () => Promise<unknown>): void {
    if (this.isProbing) return
    for (const own of partsOf(key)) if (this.guard.pausedMs(own) > 0) return
    this.isProbing = true
    const ended = (): void => {
      this.isProbing = false
    }
    call().then(ended, ended)
  }

  /** To be called when the home answers again: once, or never. */
  later(call: () => Promise<unknown>): void {
    if (this.waiting.length < MOST_WAITING) this.waiting.push(call)
  }

  /** The home answered. */
  answered(): void {
    if (this.waiting.length === 0) return
    for (const call of this.waiting.splice(0, AT_ONCE)) call().catch(noMatter)
  }

  close(): void {
    this.waiting.length = 0
  }
}

/** What could not be said twice stays as it is: charged, or held until its time is over. */
function noMatter(): void {}
