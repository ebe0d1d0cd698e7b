import type { RateSpec } from '../oracle/oracle.js'
import type { Random } from '../random.js'

interface Admitted {
  atUs: number
  cost: number
}

/** What a history is played on. */
export interface BookingSubject {
  advance(ms: number): void
  nowUs(): number
  /** Whether it passed. */
  take(cost: number): boolean
  /** @returns the time booked for. */
  book(cost: number): { readonly atUs: number; settle(actual: number): void }
}

/** Ten tokens, one a millisecond; and numbers with a short or a long refill. */
export const RESERVED_SPECS: readonly RateSpec[] = [
  { limit: 1000, windowMs: 1000, burst: 10 },
  { limit: 7, windowMs: 60_000, burst: 3 },
  { limit: 3, windowMs: 1000, burst: 20 },
  { limit: 3, windowMs: 1000, burst: 1 },
  // In a microsecond nearly a token flows back, and more than one.
  { limit: 999, windowMs: 1, burst: 2 },
  { limit: 7000, windowMs: 3, burst: 5 },
]

/** Takes, reservations and how they end, in a random order, then all that can be taken: what was admitted, and when. */
export function reservedHistory(random: Random, spec: RateSpec, subject: BookingSubject): readonly Readonly<Admitted>[] {
  const history: Admitted[] = []
  const open: { settle(actual: number): void; admitted: Admitted }[] = []
  const refillUs = (spec.windowMs * 1000 * spec.burst) / spec.limit
  const pass = (bursts: number): void => subject.advance(Math.floor(random.fraction() * bursts * refillUs) / 1000)
  const take = (cost: number): boolean => {
    const allowed = subject.take(cost)
    if (allowed) history.push({ atUs: subject.nowUs(), cost })
    return allowed
  }
  const takeAll = (): void => {
    for (let cost = spec.burst; cost >= 1; cost--) while (take(cost));
  }
  const book = (): void => {
    const cost = random.integer(1, spec.burst)
    const booking = subject.book(cost)
    const admitted = { atUs: booking.atUs, cost }
    open.push({ settle: (actual) => booking.settle(actual), admitted })
    history.push(admitted)
  }
  const end = (): void => {
    const [ended] = open.splice(random.integer(0, open.length - 1), 1)
    if (ended === undefined) return
    ended.admitted.cost = random.chance(0.6) ? 0 : random.integer(0, ended.admitted.cost)
    ended.settle(ended.admitted.cost)
  }
  for (let step = random.integer(4, 14); step > 0; step--) {
    random.pick([() => pass(1.2), () => pass(0.2), () => take(random.integer(1, spec.burst)), book, book, end, end])()
  }
  for (let i = 0; i < 3; i++) {
    pass(2)
    takeAll()
    while (open.length > 0 && random.chance(0.6)) end()
    takeAll()
  }
  return history
}
