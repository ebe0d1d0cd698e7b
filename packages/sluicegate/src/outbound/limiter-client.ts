import type { Decision } from '../decision.js'
import { holdsPermits, isPermit } from '../empty-permit.js'
import { type After, keptPermit } from '../kept-permit.js'
import type { OutboundLimiter } from './outbound-options.js'

/** So many answers about a key may be outstanding at once. */
const MOST_ASKED = 64
/** As long as nothing is known of it. */
const FIRST_TAKES = 8
/** Waits that are shorter than this are little more than round trips: then several are outstanding, so that these cost nothing. */
const BRIEF_MS = 50
/** What is leased comes to a process by itself, in shares: a denial that ends within this is looked at again, so often in a row. */
const SOON_MS = 100
const MOST_LOOKS = 4
/** Blocks are lifted, and places come back, before a denial says so. */
const LATEST_LOOK_MS = 1_000

/** Who hears what a limiter answers. */
export interface Asker {
  nowMs(): number
  /** Undefined: it was not wanted any more. */
  decided(decision: Decision | undefined): void
  failed(error: unknown): void
}

/**
 * Asks a limiter for tokens of a key, and gives back what is not used. A fleet's is asked by takes as long as they pass, several at once: they
 * use leases, and nobody waits for another's round trip. Where they do not pass, and of a limiter in memory always, one `wait` holds the place
 * of the whole line, or a few where tokens come faster than answers.
 */
export class LimiterDoor {
  /** Answers that come as soon as the limiter can. */
  soon = 0
  /** Not to be asked before. */
  notBeforeMs = Number.NEGATIVE_INFINITY
  /** When there may be a token, as far as it said. */
  expectedMs = Number.NEGATIVE_INFINITY
  /** The same where it is no guess: places come back earlier, and an outage ends, and leases come. */
  surelyMs = Number.NEGATIVE_INFINITY
  /** Its last word was that it cannot reach its store. */
  isOut = false
  private readonly limiter: OutboundLimiter
  private readonly key: string
  private readonly hasPlaces: boolean
  private next: 'take' | 'wait'
  private readonly waits = new Set<AbortController>()
  private takes = 0
  private mostTakes = FIRST_TAKES
  private mostWaits = 1
  private denials = 0
  private isLeased = false

  constructor(limiter: OutboundLimiter, key: string) {
    this.limiter = limiter
    this.key = key
    this.next = limiter.take === undefined ? 'wait' : 'take'
    this.hasPlaces = limiter.policy !== undefined && holdsPermits(limiter.policy)
  }

  /**
   * Asks for up to so many tokens, those that it was asked for already among them. What comes of a wait after {@link stop} goes back.
   *
   * @param patienceMs so long anybody waits for it: what is known to take longer is denied. 0: nobody is there who could wait.
   */
  ask(tokens: number, patienceMs: number, asker: Asker): void {
    if (this.waits.size === 0) {
      while (this.next === 'take' && this.takes < Math.min(tokens, this.mostTakes) && asker.nowMs() >= this.notBeforeMs) this.take(asker)
    }
    if (this.next === 'take' || this.takes > 0) return
    const mostWaits = patienceMs <= 0 ? 1 : this.mostWaits
    while (this.waits.size < Math.min(tokens, mostWaits)) this.wait(patienceMs, asker)
  }

  /** Nobody wants it any more. */
  stop(): void {
    const waits = [...this.waits]
    this.waits.clear()
    // The last to come goes back first: so all of them can.
    for (const wait of waits.reverse()) wait.abort()
  }

  /** What was charged; what was decided in the shadow or without the store was not. */
  giveBack(decision: Decision): void {
    if (release(decision) || decision.wouldDeny || decision.source === 'outage') return
    quietly(() => this.limiter.refund(this.key, 1))
  }

  /** Takes a token whether it is there or not. */
  charge(): void {
    // Not so a limit of places, which cannot be in debt.
    quietly(() => this.limiter.penalize(this.key, 1))
  }

  /** Keeps a place from running out until the returned function is called. */
  kept(decision: Decision, after: After): (() => void) | undefined {
    if (!isPermit(decision)) return undefined
    let unkeep: (() => void) | undefined
    quietly(() => {
      unkeep = keptPermit(decision, this.limiter.policy, after)
    })
    return () => unkeep?.()
  }

  private take(asker: Asker): void {
    const answer = attempted(() => this.limiter.take?.(this.key) as Decision | Promise<Decision>)
    const isAtOnce = !('then' in answer)
    if (isAtOnce) this.heard(answer, asker.nowMs())
    this.takes++
    this.soon++
    const over = (): void => {
      this.takes--
      this.soon--
    }
    // For whoever is first then, also where the answer is there now.
    Promise.resolve(answer).then(
      (decision) => {
        over()
        if (!isAtOnce) this.heard(decision, asker.nowMs())
        asker.decided(decision)
      },
      (error) => {
        over()
        asker.failed(error)
      },
    )
  }

  private wait(maxWaitMs: number, asker: Asker): void {
    const isHasty = maxWaitMs <= 0
    const wait = new AbortController()
    const { signal } = wait
    this.waits.add(wait)
    if (isHasty) this.soon++
    const sinceMs = asker.nowMs()
    const over = (): void => {
      if (isHasty) this.soon--
      this.waits.delete(wait)
    }
    Promise.resolve(attempted(() => this.limiter.wait(this.key, { signal, maxWaitMs }))).then(
      (decision) => {
        over()
        if (signal.aborted) {
          if (decision.allowed) this.giveBack(decision)
          return asker.decided(undefined)
        }
        const nowMs = asker.nowMs()
        const isBrief = decision.source !== 'memory' && nowMs - sinceMs < BRIEF_MS
        this.mostWaits = isBrief ? Math.min(MOST_ASKED, 2 * this.mostWaits) : 1
        this.heard(decision, nowMs, isHasty ? 'hasty' : 'patient')
        asker.decided(decision)
      },
      (error) => {
        over()
        if (signal.aborted) asker.decided(undefined)
        else asker.failed(error)
      },
    )
  }

  /** @param wait what kind of one was answered; otherwise it was a take. */
  private heard({ allowed, source, remaining, retryAfterMs }: Decision, nowMs: number, wait?: 'hasty' | 'patient'): void {
    const mayTake = this.limiter.take !== undefined && source !== 'memory'
    this.isLeased ||= source === 'lease'
    this.isOut = !allowed && source === 'outage'
    if (allowed) {
      this.denials = 0
      this.next = mayTake && (this.isLeased || remaining >= 1) ? 'take' : 'wait'
      // More come while an answer is on its way.
      this.mostTakes = Math.min(MOST_ASKED, Math.max(remaining, wait === undefined ? this.mostTakes + 1 : 1))
      return
    }
    this.denials++
    this.mostTakes = Math.ceil(this.mostTakes / 2)
    if (retryAfterMs !== Number.POSITIVE_INFINITY) this.expectedMs = nowMs + retryAfterMs
    const isSure = source !== 'outage' && source !== 'lease' && !this.hasPlaces
    this.surelyMs = isSure ? nowMs + retryAfterMs : Number.NEGATIVE_INFINITY
    const isSoon = source === 'lease' && retryAfterMs <= SOON_MS && this.denials <= MOST_LOOKS
    this.next = mayTake && (wait === undefined ? isSoon : this.isLeased) ? 'take' : 'wait'
    if (wait === 'patient' || (wait === undefined && isSoon)) {
      this.notBeforeMs = nowMs + Math.min(LATEST_LOOK_MS, Math.max(1, retryAfterMs))
    }
  }
}

/** Gives back a place, if that is what the decision is about. */
export function release(decision: Decision): boolean {
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

/** A limiter that is closed or out of reach says so to the next request as well. */
function quietly(change: () => unknown): void {
  try {
    const done = change()
    if (done instanceof Promise) done.catch(() => undefined)
  } catch {}
}
