import type { Decision } from '../decision.js'
import type { OutboundLimiter } from './outbound-options.js'

/** Asks a limiter for one token of a key at a time, and gives back what is not used. */
export class LimiterDoor {
  private readonly limiter: OutboundLimiter
  private readonly key: string
  private asking: AbortController | undefined

  constructor(limiter: OutboundLimiter, key: string) {
    this.limiter = limiter
    this.key = key
  }

  /** Asks, unless it is asking already. What comes after {@link stop} goes back; then, too, `onEnd` is called. */
  ask(onEnd: (decision: Decision | undefined) => void, onError: (error: unknown) => void): void {
    if (this.asking !== undefined) return
    const asking = new AbortController()
    const { signal } = asking
    this.asking = asking
    const over = (): void => {
      if (this.asking === asking) this.asking = undefined
    }
    this.limiter.wait(this.key, { signal }).then(
      (decision) => {
        over()
        if (signal.aborted && decision.allowed) this.giveBack(decision)
        onEnd(signal.aborted ? undefined : decision)
      },
      (error) => {
        over()
        if (signal.aborted) onEnd(undefined)
        else onError(error)
      },
    )
  }

  /** Nobody wants it any more. */
  stop(): void {
    const { asking } = this
    this.asking = undefined
    asking?.abort()
  }

  giveBack(decision: Decision): void {
    if (!release(decision)) quietly(() => this.limiter.refund(this.key, 1))
  }

  /** Takes a token whether it is there or not. */
  charge(): void {
    // Not so a limit of places, which cannot be in debt.
    quietly(() => this.limiter.penalize(this.key, 1))
  }
}

/** Gives back a place, if that is what the decision is about. */
export function release(decision: Decision): boolean {
  if (!('release' in decision)) return false
  quietly(() => (decision as { release(): unknown }).release())
  return true
}

/** A limiter that is closed or out of reach says so to the next request as well. */
function quietly(change: () => unknown): void {
  try {
    const done = change()
    if (done instanceof Promise) done.catch(() => undefined)
  } catch {}
}
