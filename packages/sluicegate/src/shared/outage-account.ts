import type { Clock } from '../clock.js'
import { channel } from '../diagnostics.js'
import { partsOf } from '../key-name.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Backend } from './backend.js'
import type { CallEvents, CallGuard } from './call-guard.js'
import type { LeasedTakes } from './leased-takes.js'
import type { Outage, Owed } from './outage.js'

/** Keys of which the store is told at once what was used without it. */
const TOLD_AT_ONCE = 32
/** How often it is looked for keys whose server came back unseen, as after a failover, when another one has their slot. */
const LOOKED_FOR_MS = 1_000
/** At most this part of the time goes into looking. */
const LOOKING_SHARE = 10

/** What accounting needs; of the policy in force. */
export interface AccountParts {
  readonly policy: Pick<Policy, 'name'>
  readonly guard: Pick<CallGuard, 'isSound' | 'unwanted'>
  readonly backend: Pick<Backend, 'execute'>
  readonly outage: Outage
  readonly leases: LeasedTakes | undefined
}

/**
 * Tells the store, once it is back, what was used without it: a few keys at a time. What is lost on the way may have been told, and is not
 * told again; keys whose server is out, or goes out meanwhile, stay for later.
 */
export class OutageAccount implements CallEvents {
  /** Tokens that the store was told of. */
  tokens = 0
  private readonly parts: () => AccountParts
  private readonly clock: Clock
  private isTelling = false
  private isDue = false
  private isClosed = false
  private nextMs = Number.NEGATIVE_INFINITY

  constructor(parts: () => AccountParts, clock: Clock) {
    this.parts = parts
    this.clock = clock
  }

  /** A server was given up, or answers again. */
  outage(server: string | undefined, isOut: boolean): void {
    if (outages.hasSubscribers) outages.publish({ policy: this.parts().policy.name, server, isOut })
    if (!isOut) this.recovered()
  }

  /** A server answers again. */
  recovered(): void {
    this.isDue = true
    void this.tell()
  }

  /** From now on nothing is told. */
  close(): void {
    this.isClosed = true
  }

  /** A call was answered. */
  answered(): void {
    if (this.parts().outage.isOwing && !this.isTelling && !this.isClosed && this.clock.nowMs() >= this.nextMs) this.recovered()
  }

  /** The store has charged a take after all, whose caller had been told that there is no store. */
  charged(keys: readonly string[], tokens: number): void {
    if (this.isClosed) return
    this.tokens += Math.max(0, ...this.parts().outage.covered(keys, tokens))
  }

  private async tell(): Promise<void> {
    if (this.isTelling || this.isClosed) return
    this.isTelling = true
    const sinceMs = this.clock.nowMs()
    while (this.isDue && !this.isClosed) {
      this.isDue = false
      const { outage, guard } = this.parts()
      const owed = outage.settle((key) => isBack(guard, key))
      await Promise.all(Array.from({ length: TOLD_AT_ONCE }, () => this.tellEach(owed)))
    }
    const nowMs = this.clock.nowMs()
    this.nextMs = nowMs + Math.max(LOOKED_FOR_MS, LOOKING_SHARE * (nowMs - sinceMs))
    this.isTelling = false
  }

  private async tellEach(owed: Iterable<Owed | undefined>): Promise<void> {
    for (const each of owed) {
      if (this.isClosed) return
      if (each === undefined) await breath()
      else await this.tellOf(each)
    }
  }

  private async tellOf({ key, tokens }: Owed): Promise<void> {
    // Of a booking that nobody wanted nothing comes back once somebody took after it.
    await this.parts().guard.unwanted.settled(key)
    if (this.isClosed) return
    const { backend, leases } = this.parts()
    try {
      await backend.execute({ verb: 'charge', key, tokens })
      this.tokens += Math.max(...tokens)
    } catch {
      // An outage again, or the server does not take it.
    }
    leases?.forget(key)
  }
}

function isBack(guard: Pick<CallGuard, 'isSound'>, key: Key): boolean {
  try {
    return [...partsOf(key)].every((own) => guard.isSound(own))
  } catch {
    // A function of the caller's says where a key belongs, and this time it could not.
    return false
  }
}

/** Lets others have their turn. */
function breath(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve))
}

/** Published on `sluicegate:outage`: a server of a store was given up after failures in a row, or answers again. */
export interface OutageEvent {
  readonly policy: string
  /** As the client calls it, such as `10.0.0.7:6379`; undefined when there is but one, or the client does not tell. */
  readonly server: string | undefined
  /** False when it is back. */
  readonly isOut: boolean
}

export const outages = channel<OutageEvent>('sluicegate:outage')
