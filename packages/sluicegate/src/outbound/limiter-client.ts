import { chained, type When } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { holdsPermits, isPermit, keptPermit } from '../decision/permit.js'
import type { Reservation } from '../decision/reservation.js'
import { takeOf, waitOf } from '../decision/settled-takes.js'
import type { OpenOptions } from '../holds/hold.js'
import { isHold, keptHold, openOf } from '../holds/metered.js'
import type { After } from '../time/clock.js'
import type { OutboundLimiter } from './outbound-options.js'

/** Answers for one key that may be outstanding at once. */
const MAX_ASKED = 64
/** Concurrent takes before anything is known of the limiter. */
const FIRST_TAKES = 8
/** A wait that is shorter is little more than a round trip: several are then outstanding, to hide the latency. */
const BRIEF_MS = 50
/**
 * Leases arrive at a process in shares: after a leased denial that ends within this time the client takes again, up to this number of times
 * in a row.
 */
const SOON_MS = 100
const MAX_LOOKS = 4
/**
 * Blocks may be lifted, permits released and holds closed before the time that a denial announced: the client asks again after this time at the latest.
 */
const LATEST_LOOK_MS = 1_000

/** Receives the answers of a limiter. */
export interface TokenListener {
  nowMs(): number
  /** @param decision undefined for an answer that is not needed any more. */
  decided(decision: Decision | undefined): void
  failed(error: unknown): void
}

/**
 * Asks a limiter for tokens of one key, and gives back those that are not used. A shared limiter is asked by takes as long as they are
 * allowed, several at once: these use leases and hide round trips. After a denial, and always for a limiter in memory, one `wait` holds the
 * place of the whole queue, or several where tokens come faster than answers. Nobody waits for a hold in its limiter: it is asked again.
 */
export class LimiterClient {
  /** Outstanding answers that do not wait for tokens. */
  pending = 0
  /** The limiter is not asked before this reading. */
  notBeforeMs = Number.NEGATIVE_INFINITY
  /** The reading from which on a token is expected. */
  expectedMs = Number.NEGATIVE_INFINITY
  /** The same if it is certain; not known for permits, which may be released earlier, for outages, which may end, and for leases. */
  earliestTokenMs = Number.NEGATIVE_INFINITY
  /** Its last answer was an outage. */
  isOut = false
  private readonly limiter: OutboundLimiter
  private readonly key: string
  private readonly metered: OpenOptions | undefined
  private readonly hasPlaces: boolean
  private next: 'take' | 'wait'
  private readonly waits = new Set<AbortController>()
  private takes = 0
  private mostTakes = FIRST_TAKES
  private mostWaits = 1
  private denials = 0
  private isLeased = false
  /** Of decisions that allowed, until these are forgotten. */
  private readonly reservations = new WeakMap<Decision, Reservation<When>>()

  /** @param metered how to open the hold of a request; undefined where each takes one token. */
  constructor(limiter: OutboundLimiter, key: string, metered?: OpenOptions) {
    this.limiter = limiter
    this.key = key
    this.metered = metered
    this.next = limiter.take === undefined && metered === undefined ? 'wait' : 'take'
    this.hasPlaces = limiter.policy !== undefined && holdsPermits(limiter.policy)
  }

  /**
   * Asks for tokens, including those that were asked for and not answered yet. What a wait returns after {@link stop} is given back.
   *
   * @param patienceMs the longest time that a request waits; longer waits are denied. 0 if no request can wait.
   */
  ask(tokens: number, patienceMs: number, listener: TokenListener): void {
    if (this.waits.size === 0) {
      while (this.next === 'take' && this.takes < Math.min(tokens, this.mostTakes) && listener.nowMs() >= this.notBeforeMs)
        this.take(listener)
    }
    if (this.next === 'take' || this.takes > 0) return
    const mostWaits = patienceMs <= 0 ? 1 : this.mostWaits
    while (this.waits.size < Math.min(tokens, mostWaits)) this.wait(patienceMs, listener)
  }

  /** No request needs a token any more. */
  stop(): void {
    const waits = [...this.waits]
    this.waits.clear()
    // The newest reservation is cancelled first, so that all of them can be.
    for (const wait of waits.reverse()) wait.abort()
  }

  /** Gives back a charge, as far as it is still owed. */
  giveBack(decision: Decision): void {
    if (release(decision)) return
    const reservation = this.reservations.get(decision)
    this.reservations.delete(decision)
    quietly(() => reservation?.cancel())
  }

  /**
   * The request of this decision is over: a permit is released, a hold is closed, a charge corrected.
   *
   * @param cost what it cost, if that is known.
   * @param freed called when what a hold had left is free.
   */
  ended(decision: Decision, cost: number | undefined, freed: () => void): void {
    if (release(decision)) return
    const reservation = this.reservations.get(decision)
    if (this.metered === undefined && cost === undefined) return
    this.reservations.delete(decision)
    quietly(() =>
      chained(cost === undefined ? reservation?.cancel() : reservation?.settle(cost), () => {
        if (this.metered === undefined) return
        this.notBeforeMs = Number.NEGATIVE_INFINITY
        freed()
      }),
    )
  }

  /** Takes a token even if none is left. A hold is that of all redirects. */
  charge(): void {
    if (this.metered !== undefined) return
    // Fails for `concurrency`, which has no debt.
    quietly(() => this.limiter.penalize(this.key, 1))
  }

  /** Renews a permit or a hold until the returned function is called. */
  kept(decision: Decision, after: After): (() => void) | undefined {
    if (this.metered !== undefined && isHold(decision)) return keptHold(decision, this.metered, after)
    if (!isPermit(decision)) return undefined
    let unkeep: (() => void) | undefined
    quietly(() => {
      unkeep = keptPermit(decision, this.limiter, this.key, after)
    })
    return () => unkeep?.()
  }

  /** The decision of a take, which is kept for {@link giveBack}. */
  private readonly noted = (reservation: Reservation<When>): Decision => {
    const { decision } = reservation
    if (decision?.allowed) this.reservations.set(decision, reservation)
    return decision
  }

  private take(listener: TokenListener): void {
    const { key, metered } = this
    const limiter = this.limiter as OutboundLimiter & Required<Pick<OutboundLimiter, 'take'>>
    const answer = attempted(() =>
      chained<Reservation<When>, Decision>(
        metered === undefined ? takeOf(limiter, key, 1, () => listener.nowMs()) : openOf(limiter, key, metered),
        this.noted,
      ),
    )
    const isAtOnce = !('then' in answer)
    if (isAtOnce) this.note(answer, listener.nowMs())
    this.takes++
    this.pending++
    const over = (): void => {
      this.takes--
      this.pending--
    }
    // Asynchronous also for an answer that is there already: the request that is first then gets it.
    Promise.resolve(answer).then(
      (decision) => {
        over()
        if (!isAtOnce) this.note(decision, listener.nowMs())
        listener.decided(decision)
      },
      (error) => {
        over()
        listener.failed(error)
      },
    )
  }

  private wait(maxWaitMs: number, listener: TokenListener): void {
    const isImmediate = maxWaitMs <= 0
    const wait = new AbortController()
    const { signal } = wait
    this.waits.add(wait)
    if (isImmediate) this.pending++
    const sinceMs = listener.nowMs()
    const over = (): void => {
      if (isImmediate) this.pending--
      this.waits.delete(wait)
    }
    Promise.resolve(
      attempted(() => waitOf(this.limiter, this.key, { cost: 1, signal, maxWait: maxWaitMs }, () => listener.nowMs()).then(this.noted)),
    ).then(
      (decision) => {
        over()
        if (signal.aborted) {
          if (decision.allowed) this.giveBack(decision)
          return listener.decided(undefined)
        }
        const nowMs = listener.nowMs()
        const isBrief = decision.source !== 'memory' && nowMs - sinceMs < BRIEF_MS
        this.mostWaits = isBrief ? Math.min(MAX_ASKED, 2 * this.mostWaits) : 1
        this.note(decision, nowMs, isImmediate ? 'immediate' : 'patient')
        listener.decided(decision)
      },
      (error) => {
        over()
        if (signal.aborted) listener.decided(undefined)
        else listener.failed(error)
      },
    )
  }

  /** @param wait the kind of wait that was answered; undefined for a take. */
  private note({ allowed, source, remaining, retryAfterMs }: Decision, nowMs: number, wait?: 'immediate' | 'patient'): void {
    const isMetered = this.metered !== undefined
    const mayTake = isMetered || (this.limiter.take !== undefined && source !== 'memory')
    this.isLeased ||= source === 'lease'
    this.isOut = !allowed && source === 'outage'
    if (allowed) {
      this.denials = 0
      this.next = mayTake && (isMetered || this.isLeased || remaining >= 1) ? 'take' : 'wait'
      // More requests arrive while an answer is on its way.
      this.mostTakes = Math.min(MAX_ASKED, Math.max(remaining, wait === undefined ? this.mostTakes + 1 : 1))
      return
    }
    this.denials++
    this.mostTakes = Math.ceil(this.mostTakes / 2)
    if (retryAfterMs !== Number.POSITIVE_INFINITY) this.expectedMs = nowMs + retryAfterMs
    const isSure = source !== 'outage' && source !== 'lease' && !this.hasPlaces && !isMetered
    this.earliestTokenMs = isSure ? nowMs + retryAfterMs : Number.NEGATIVE_INFINITY
    const isSoon = source === 'lease' && retryAfterMs <= SOON_MS && this.denials <= MAX_LOOKS
    this.next = isMetered || (mayTake && (wait === undefined ? isSoon : this.isLeased)) ? 'take' : 'wait'
    if (isMetered || wait === 'patient' || (wait === undefined && isSoon)) {
      this.notBeforeMs = nowMs + Math.min(LATEST_LOOK_MS, Math.max(1, retryAfterMs))
    }
  }
}

/** Releases a permit. False for other decisions. */
function release(decision: Decision): boolean {
  if (!isPermit(decision)) return false
  quietly(() => decision.release())
  return true
}

function attempted(ask: () => Decision | Promise<Decision>): Decision | Promise<Decision> {
  try {
    return ask()
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Errors are ignored: a limiter that is closed or unreachable fails the next request as well. */
function quietly(change: () => unknown): void {
  try {
    const done = change()
    if (done instanceof Promise) done.catch(() => undefined)
  } catch {}
}
