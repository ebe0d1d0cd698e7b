import { closedError } from '../errors.js'
import { checkKey } from '../key.js'
import { fingerprint, high, low } from '../memory/fingerprint.js'
import { Shown, shownAs } from '../shown.js'
import { type Clock, type ClockHandle, clockHandle } from '../time/clock.js'
import type { GateHandle, Verdict, VerdictReader, VerdictState } from './gate.js'
import type { VerdictSet } from './verdict-set.js'

/** What a handle carries. */
export interface VerdictSetHandle extends GateHandle {
  readonly verdicts: SharedArrayBuffer
  readonly baseMs: number
  readonly secret: readonly [number, number]
  readonly clock: ClockHandle
}

const PASSES: VerdictState = /* @__PURE__ */ Object.freeze({ verdict: 'pass', untilMs: 0, retryAfterMs: 0 })

/** Looks into the verdicts of shared memory: hashes the key, and reads the clock only for a key that has a verdict. */
export class SharedVerdicts extends Shown implements VerdictReader {
  protected readonly clock: Clock
  protected readonly secret: readonly [number, number]
  protected isClosed = false
  private readonly verdictSet: VerdictSet
  private readonly k0: number
  private readonly k1: number

  constructor(set: VerdictSet, secret: readonly [number, number], clock: Clock) {
    super()
    this.verdictSet = set
    this.secret = secret
    this.k0 = secret[0]
    this.k1 = secret[1]
    this.clock = clock
  }

  check(key: string): Verdict {
    checkKey(key)
    if (this.isClosed) throw closedError()
    const set = this.verdictSet
    if (set.isEmpty) return 'pass'
    fingerprint(key, this.k0, this.k1)
    const verdict = set.find(low, high)
    return verdict !== 'pass' && set.untilMs > this.clock.nowMs() ? verdict : 'pass'
  }

  inspect(key: string): VerdictState {
    checkKey(key)
    if (this.isClosed) throw closedError()
    fingerprint(key, this.k0, this.k1)
    const set = this.verdictSet
    const verdict = set.find(low, high)
    if (verdict === 'pass') return PASSES
    const retryAfterMs = Math.ceil(set.untilMs - this.clock.nowMs())
    return retryAfterMs > 0 ? { verdict, untilMs: set.untilMs, retryAfterMs } : PASSES
  }

  handle(): GateHandle {
    if (this.isClosed) throw closedError()
    const { memory, baseMs } = this.verdictSet
    const handle: VerdictSetHandle = { sluicegate: 1, verdicts: memory, baseMs, secret: this.secret, clock: clockHandle(this.clock) }
    return shownAs(handle, 'GateHandle', {})
  }

  close(): void {
    this.isClosed = true
  }

  [Symbol.dispose](): void {
    this.close()
  }

  override toJSON(): object {
    return {}
  }
}
