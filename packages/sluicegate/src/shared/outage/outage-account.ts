import { outages } from '../../decision/diagnostics.js'
import { partsOf } from '../../key.js'
import type { Key } from '../../limiter.js'
import type { Clock } from '../../time/clock.js'
import type { CallEvents, CallGuard } from '../calls/call-guard.js'
import type { PolicyInForce } from '../policy-in-force.js'
import type { LocalShare } from './local-share.js'
import type { Owed } from './outage.js'

/** Keys that are accounted for at once. */
const CHARGED_AT_ONCE = 32
/** How often to look for keys whose server came back unseen: after a failover another server has their slot. */
const LOOKED_FOR_MS = 1_000
/** At most one part in this many of the time goes into looking. */
const LOOKING_SHARE = 10

/**
 * Charges at the backend, once it is back, what was spent during an outage, a few keys at a time. A charge that is lost may have been made
 * and is not repeated. Keys whose server is out stay for later.
 */
export class OutageAccount implements CallEvents {
  /** Tokens that were charged. */
  tokens = 0
  private readonly inForce: Pick<PolicyInForce, 'now'>
  private readonly clock: Clock
  private readonly share: Pick<LocalShare, 'answered'>
  private isCharging = false
  private isDue = false
  private isClosed = false
  private nextMs = Number.NEGATIVE_INFINITY

  constructor(inForce: Pick<PolicyInForce, 'now'>, clock: Clock, share: Pick<LocalShare, 'answered'>) {
    this.inForce = inForce
    this.clock = clock
    this.share = share
  }

  /** The circuit of a server opened or closed. */
  outage(server: string | undefined, isOut: boolean): void {
    if (outages.hasSubscribers) outages.publish({ policy: this.inForce.now.policy.name, server, isOut })
    if (!isOut) this.recovered()
  }

  /** The circuit of a server closed. */
  recovered(): void {
    this.isDue = true
    void this.charge()
  }

  /** Nothing is charged from now on. */
  close(): void {
    this.isClosed = true
  }

  /** A call was answered. */
  answered(): void {
    this.share.answered()
    if (this.inForce.now.outage.isOwing && !this.isCharging && !this.isClosed && this.clock.nowMs() >= this.nextMs) this.recovered()
  }

  /** The backend has charged a take that had timed out: what was decided in its place needs no charge. */
  charged(keys: readonly string[], tokens: number): void {
    if (this.isClosed) return
    this.tokens += Math.max(0, ...this.inForce.now.outage.covered(keys, tokens))
  }

  private async charge(): Promise<void> {
    if (this.isCharging || this.isClosed) return
    this.isCharging = true
    const sinceMs = this.clock.nowMs()
    while (this.isDue && !this.isClosed) {
      this.isDue = false
      const { outage, guard } = this.inForce.now
      const owed = outage.settle((key) => isBack(guard, key))
      await Promise.all(Array.from({ length: CHARGED_AT_ONCE }, () => this.chargeEach(owed)))
    }
    const nowMs = this.clock.nowMs()
    this.nextMs = nowMs + Math.max(LOOKED_FOR_MS, LOOKING_SHARE * (nowMs - sinceMs))
    this.isCharging = false
  }

  private async chargeEach(owed: Iterable<Owed | undefined>): Promise<void> {
    for (const each of owed) {
      if (this.isClosed) return
      if (each === undefined) await breath()
      else await this.chargeOne(each)
    }
  }

  private async chargeOne({ key, tokens }: Owed): Promise<void> {
    // Once another take came after it, nothing of an unwanted reservation comes back.
    await this.inForce.now.guard.unwanted.settled(key)
    if (this.isClosed) return
    const { backend, leases } = this.inForce.now
    try {
      await backend.execute({ verb: 'charge', key, tokens })
      this.tokens += Math.max(...tokens)
    } catch {
      // Another outage, or the server refuses it.
    }
    leases?.forget(key)
  }
}

function isBack(guard: Pick<CallGuard, 'isSound'>, key: Key): boolean {
  try {
    return [...partsOf(key)].every((own) => guard.isSound(own))
  } catch {
    // `hashTag` is a function of the caller's, and it threw.
    return false
  }
}

/** Yields to the event loop. */
function breath(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve))
}
