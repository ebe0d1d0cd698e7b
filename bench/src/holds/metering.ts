import type { Hold, Limiter, OpenOptions, Reservation } from 'sluicegate'

/** One answer that is being streamed. */
export interface Metered {
  /** Before a piece is sent: whether it may be. */
  piece(): boolean | Promise<boolean>
  end(): void
}

/** A way to keep answers within a budget. Undefined: this answer may not begin now. */
export interface Metering {
  readonly name: string
  begin(limiter: Limiter, key: string): Metered | number
}

/** Milliseconds until it is worth trying again. */
function again(retryAfterMs: number): number {
  return Math.min(Math.max(retryAfterMs, 20), 60_000)
}

export function holding(name: string, options: OpenOptions): Metering {
  return {
    name,
    begin(limiter, key) {
      const work = limiter.open(key, options) as Hold<boolean | Promise<boolean>>
      if (!work.allowed) return again(work.retryAfterMs)
      return { piece: () => work.add(1), end: () => void work.close() }
    },
  }
}

/** What the budget pays is charged before, and corrected afterwards. */
export function reserving(tokens: number): Metering {
  return {
    name: `reserve ${tokens.toLocaleString('en')}, settle`,
    begin(limiter, key) {
      const reservation: Reservation = limiter.reserve(key, tokens, { maxWait: 0 })
      if (!reservation.allowed) return again(reservation.waitMs)
      let sent = 0
      const piece = (): boolean => {
        sent++
        return true
      }
      return { piece, end: () => void reservation.settle(sent) }
    },
  }
}

/** As most gateways do: an answer begins while anything is left, and is charged when it has ended. */
export const CHECKING: Metering = {
  name: 'check, charge at the end',
  begin(limiter, key) {
    const { allowed, retryAfterMs } = limiter.peek(key, 1)
    if (!allowed) return again(retryAfterMs)
    let sent = 0
    const piece = (): boolean => {
      sent++
      return true
    }
    return { piece, end: () => void (sent > 0 && limiter.penalize(key, sent)) }
  },
}

/** A call for each piece, and nothing held. */
export const METER: Metering = {
  name: 'a take for each piece',
  begin(limiter, key) {
    const { allowed, retryAfterMs } = limiter.peek(key, 1)
    return allowed ? { piece: () => limiter.take(key, 1).allowed, end: () => undefined } : again(retryAfterMs)
  },
}
