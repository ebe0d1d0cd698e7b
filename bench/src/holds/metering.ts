import { createLimiter, type Hold, type Limiter, type ManualClock, type OpenOptions, type Policy, type Reservation } from 'sluicegate'
import { requireRival } from '../rivals.js'

/** One answer that is being streamed. */
export interface Metered {
  /** Before a piece is sent: whether it may be. */
  piece(): boolean | Promise<boolean>
  end(): unknown
}

/** Answers of one key within a budget. A number: this answer may not begin now; milliseconds until it is worth trying again. */
export interface Meter {
  begin(): Metered | number | Promise<Metered | number>
  close(): void
}

/** A way to keep answers within a budget. */
export interface Metering {
  readonly name: string
  meter(policy: Policy, clock: ManualClock): Meter
  /** Whether it has such a policy. */
  counts(policy: Policy): boolean
}

const KEY = 'acme'

/** Milliseconds until it is worth trying again. */
export function again(retryAfterMs: number): number {
  return Math.min(Math.max(retryAfterMs, 20), 60_000)
}

/** A way of this library's. */
function own(name: string, begin: (limiter: Limiter) => Metered | number): Metering {
  return {
    name,
    counts: () => true,
    meter(policy, clock) {
      const limiter = createLimiter(policy, { clock })
      return { begin: () => begin(limiter), close: () => limiter.close() }
    },
  }
}

export function holding(name: string, options: OpenOptions): Metering {
  return own(name, (limiter) => {
    const work = limiter.open(KEY, options) as Hold<boolean | Promise<boolean>>
    if (!work.allowed) return again(work.retryAfterMs)
    return { piece: () => work.add(1), end: () => work.close() }
  })
}

/** Pieces that are sent whatever they cost, and counted. */
export function counted(end: (sent: number) => unknown): Metered {
  let sent = 0
  const piece = (): boolean => {
    sent++
    return true
  }
  return { piece, end: () => end(sent) }
}

/** What the budget pays is charged before, and corrected afterwards. */
export function reserving(tokens: number): Metering {
  return own(`reserve ${tokens.toLocaleString('en')}, settle`, (limiter) => {
    const reservation: Reservation = limiter.reserve(KEY, tokens, { maxWait: 0 })
    return reservation.allowed ? counted((sent) => reservation.settle(sent)) : again(reservation.waitMs)
  })
}

/** As most gateways do: an answer begins while anything is left, and is charged when it has ended. */
export const CHECKING: Metering = own('check, charge at the end', (limiter) => {
  const { allowed, retryAfterMs } = limiter.peek(KEY, 1)
  return allowed ? counted((sent) => sent > 0 && limiter.penalize(KEY, sent)) : again(retryAfterMs)
})

/** A call for each piece, and nothing held. */
export const METER: Metering = own('a take for each piece', (limiter) => {
  const { allowed, retryAfterMs } = limiter.peek(KEY, 1)
  return allowed ? { piece: () => limiter.take(KEY, 1).allowed, end: () => undefined } : again(retryAfterMs)
})

/** What is used of rate-limiter-flexible, whose windows begin with the first charge, by the clock of the machine. */
interface Flexible {
  readonly RateLimiterMemory: new (options: {
    readonly points: number
    readonly duration: number
  }) => {
    get(key: string): Promise<{ readonly consumedPoints: number; readonly msBeforeNext: number } | null>
    penalty(key: string, points: number): Promise<unknown>
    delete(key: string): Promise<unknown>
  }
}

/** The same check and charge by the rival that most use. */
export const CHECKING_THERE: Metering = {
  name: 'rate-limiter-flexible: check, charge at the end',
  counts: ({ algorithm }) => algorithm === 'fixed-window',
  meter({ limit, windowMs }, clock) {
    const { RateLimiterMemory } = requireRival('rate-limiter-flexible') as Flexible
    const machineNow = Date.now
    Date.now = () => clock.nowMs()
    const limiter = new RateLimiterMemory({ points: limit, duration: windowMs / 1000 })
    return {
      async begin() {
        const { consumedPoints = 0, msBeforeNext = 0 } = (await limiter.get(KEY)) ?? {}
        // The timer that ends a window is one of the machine.
        if (msBeforeNext <= 0 || consumedPoints < limit) return counted((sent) => sent > 0 && limiter.penalty(KEY, sent))
        return again(msBeforeNext)
      },
      close() {
        Date.now = machineNow
        // Its timer.
        void limiter.delete(KEY)
      },
    }
  },
}
