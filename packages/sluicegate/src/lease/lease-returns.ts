import { type Clock, type Ticker, tickerOf } from '../clock.js'
import type { Backend } from '../shared/backend.js'
import { Alarm, type Alert } from '../waiting/alarm.js'
import type { KeyLease } from './key-lease.js'

/** The alert for the expiry of a key's leased tokens. */
class Ending implements Alert {
  dueUs = 0
  order = 0
  place = -1
  readonly ring: () => void

  constructor(ring: () => void) {
    this.ring = ring
  }
}

/**
 * Returns unspent tokens to the backend. They expire here first and are returned after that, by one call for each grant of a key: so no
 * returned token is ever spent. If the call is lost, the tokens stay charged, as those of a crashed process do.
 */
export class LeaseReturns {
  private readonly backend: Backend
  private readonly part: number
  private readonly ticker: Ticker
  /** One timer for all keys. */
  private readonly alarm: Alarm
  private readonly endings = new Map<KeyLease, Ending>()
  private order = 0
  private isClosed = false

  constructor({ backend, part, clock }: { readonly backend: Backend; readonly part: number; readonly clock: Clock }) {
    this.backend = backend
    this.part = part
    this.ticker = tickerOf(clock)
    // Without a clock no token is spent either.
    this.alarm = new Alarm(clock, () => {
      for (const ending of this.endings.values()) this.alarm.clear(ending)
      this.endings.clear()
    })
  }

  /** Returns the tokens of a key when they expire. */
  watch(lease: KeyLease, key: string): void {
    this.send(lease, key)
    const { backUs } = lease
    if (backUs === Number.POSITIVE_INFINITY || this.endings.has(lease)) return
    const ending = new Ending(() => {
      this.endings.delete(lease)
      if (this.isClosed) lease.end()
      this.watch(lease, key)
    })
    this.endings.set(lease, ending)
    // Takes that wait for the grant are served first, also by a limiter that was closed meanwhile.
    this.alarm.set(ending, this.isClosed ? this.ticker.read() : backUs, this.order++)
  }

  /** Returns tokens that have expired. */
  send(lease: KeyLease, key: string): void {
    for (const { id, tokens } of lease.unspentAt(this.ticker.read())) {
      const reopen = (): void => lease.reopen(this.ticker.read())
      this.backend.execute({ verb: 'return', key, part: this.part, tokens, grantId: id }).then(reopen, () => undefined)
    }
  }

  /** Returns all tokens, and those still on their way. */
  close(): void {
    this.isClosed = true
    for (const ending of [...this.endings.values()]) {
      this.alarm.clear(ending)
      ending.ring()
    }
  }
}
