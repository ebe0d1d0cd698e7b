import { BoundedMap } from '../bounded-map.js'
import { RateDecoder } from '../decision/decision-decoder.js'
import type { Policy } from '../policy/policy.js'
import { leftOf, type MemoryBooking } from './memory-bookings.js'
import type { MemoryDecisions } from './memory-decisions.js'

/** The most keys of a limiter of which it is known where they are, or when they were reset. */
const MOST_KEYS = 10_000

/** The numbers by which a limiter decided when a key left it, or came. */
interface Numbers {
  readonly decoder: MemoryDecisions['decoder']
  readonly generation: number
}

/** A key that went to another limiter with what it had spent. */
interface Move<To> {
  readonly to: To
  readonly atUs: number
  /** The limiter that it left, and the other one. */
  readonly before: Numbers
  readonly after: Numbers
  /** Whether all that it had spent went along, so that nothing was forgiven. */
  readonly isWhole: boolean
}

/**
 * Where keys of a limiter went, so that what is given back of an earlier charge finds them. Of a key that came back, or was reset, nothing from before is
 * returned, and of one that is not known nothing from before the latest that was forgotten: it may be elsewhere.
 */
export class KeyMoves<To> {
  private forgottenUs = Number.NEGATIVE_INFINITY
  private readonly byKey = new BoundedMap<string, Move<To> | { readonly to: undefined; readonly atUs: number }>(MOST_KEYS, ({ atUs }) => {
    this.forgottenUs = Math.max(this.forgottenUs, atUs)
  })

  left(key: string, move: Move<To>): void {
    this.byKey.set(key, move)
  }

  cameBack(key: string): void {
    const move = this.byKey.get(key)
    if (move !== undefined) this.byKey.set(key, { to: undefined, atUs: move.atUs })
  }

  /** It was reset here, at this reading: what was charged before that is forgiven. */
  renewed(key: string, atUs: number): void {
    const move = this.byKey.get(key)
    if (move?.to === undefined) this.byKey.set(key, { to: undefined, atUs: atUs - 1 })
  }

  /** Where a booking is by now, and what is left of it there; undefined: where it was made. */
  of(booking: MemoryBooking): { readonly to: To | undefined; readonly booking: MemoryBooking } | undefined {
    const move = this.byKey.size === 0 ? undefined : this.byKey.get(booking.key as string)
    if (move === undefined ? !this.hasForgotten(booking) : move.atUs < booking.bookedUs) return undefined
    return move !== undefined && 'isWhole' in move
      ? { to: move.to, booking: carried(booking, move) }
      : { to: undefined, booking: { ...booking, isOverflow: true } }
  }

  /** Whether nobody knows where a booking's key went since. */
  hasForgotten({ key, bookedUs }: MemoryBooking): boolean {
    return bookedUs <= this.forgottenUs && !this.byKey.has(key as string)
  }
}

export function numbersOf({ decoder, generation }: MemoryDecisions): Numbers {
  return { decoder, generation }
}

/** A booking as it counts in the limiter to which its key went; the hash of the key is still that of the other limiter. */
function carried(booking: MemoryBooking, { atUs, before, after, isWhole }: Move<unknown>): MemoryBooking {
  const moved = { ...booking, bookedUs: atUs, generation: after.generation }
  const gone = { ...moved, isOverflow: true }
  if (!isWhole || booking.generation !== before.generation) return gone
  const [from, to] = [before.decoder, after.decoder]
  if (!(from instanceof RateDecoder)) return haveSameWindows(from.policy, to.policy) ? moved : gone
  // What is booked ahead stands on what was booked before it, which other numbers have moved.
  if (!(to instanceof RateDecoder) || booking.atUs > atUs) return gone
  const left = leftOf(booking, from) - (atUs - booking.atUs) * from.unitsPerUs
  if (left <= 0) return gone
  return { ...moved, atUs, left: Number((BigInt(left) * BigInt(to.unitsPerToken)) / BigInt(from.unitsPerToken)) }
}

function haveSameWindows(one: Policy, other: Policy): boolean {
  const { algorithm, windowMs, calendar } = one
  const isSame = algorithm === other.algorithm && windowMs === other.windowMs
  return isSame && JSON.stringify(calendar) === JSON.stringify(other.calendar)
}
