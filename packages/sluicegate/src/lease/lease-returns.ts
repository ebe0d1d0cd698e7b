import { type Clock, type Ticker, tickerOf } from '../clock.js'
import type { Backend } from '../shared/backend.js'
import { Alarm, type Alert } from '../waiting/alarm.js'
import type { KeyLease } from './key-lease.js'

/** The tokens of a key that are here until they end. */
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
 * Gives back what was not spent. It is void here first, and only then is the authority told, by one call for what a key had of a lease: so
 * nothing that was given back is ever spent. Should that call be lost, the tokens stay charged, as those of a process that crashed do.
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
    // Who knows no time spends nothing either.
    this.alarm = new Alarm(clock, () => {
      for (const ending of this.endings.values()) this.alarm.clear(ending)
      this.endings.clear()
    })
  }

  /** Sees to what a key has been lent. */
  watch(lease: KeyLease, key: string): void {
    this.tell(lease, key)
    const { backUs } = lease
    if (backUs === Number.POSITIVE_INFINITY || this.endings.has(lease)) return
    const ending = new Ending(() => {
      this.endings.delete(lease)
      if (this.isClosed) lease.end()
      this.watch(lease, key)
    })
    this.endings.set(lease, ending)
    // Those who waited for it are served first, also by a limiter that was closed meanwhile.
    this.alarm.set(ending, this.isClosed ? this.ticker.read() : backUs, this.order++)
  }

  /** Gives back what has ended already. */
  tell(lease: KeyLease, key: string): void {
    for (const { id, tokens } of lease.unspentAt(this.ticker.read())) {
      const reopen = (): void => lease.reopen(this.ticker.read())
      this.backend.execute({ verb: 'return', key, part: this.part, tokens, grantId: id }).then(reopen, () => undefined)
    }
  }

  /** Gives back all that is here, and whatever still comes. */
  close(): void {
    this.isClosed = true
    for (const ending of [...this.endings.values()]) {
      this.alarm.clear(ending)
      ending.ring()
    }
  }
}
