import type { Decision } from '../decision/decision.js'
import { high, low } from './fingerprint.js'
import { CLOSING } from './held-accounts.js'
import type { MemoryLimiter } from './memory-limiter.js'

/** A key of a limiter in memory of which others hold tokens. All but the decision throw `CONTENTION`. */
export class HeldKey {
  readonly key: string
  private readonly place: () => MemoryLimiter

  /** @param place where the key is by now. */
  constructor(key: string, place: () => MemoryLimiter) {
    this.key = key
    this.place = place
  }

  get part(): MemoryLimiter {
    return this.place()
  }

  /** What a take of 1 would get, whatever is held. */
  seen(): Decision {
    return this.part.peekAlone(this.key)
  }

  isBlocked(): boolean {
    return this.answer((nowUs, part) => part.core.banLeft(low, high, nowUs)) > 0
  }

  /** Whether there is a place for what is held until then. */
  hasRoom(endUs: number): boolean {
    let isRefused = false
    this.answer((nowUs, part) => {
      const answer = part.core.prepareHold(low, high, nowUs, endUs)
      isRefused = Number.isNaN(answer) && part.section.open.reason() === 'REFUSED'
      return isRefused ? 0 : answer
    })
    return !isRefused
  }

  /** Adds to what is held until an end, whatever the key owes, or takes from it. */
  move(tokens: number, endUs: number): void {
    if (tokens > 0) this.part.carryHeld(this.key, [{ tokens, endUs }])
    else this.answer((nowUs, part) => part.core.spendHold(0, low, high, nowUs, 0, -tokens, endUs, 0, CLOSING))
  }

  /** Charges tokens, whatever is free, also while it is blocked. */
  charge(tokens: number): void {
    this.answer((nowUs, part) => part.core.spendHold(0, low, high, nowUs, tokens, 0, 0, 0, CLOSING))
  }

  private answer(verb: (nowUs: number, part: MemoryLimiter) => number): number {
    const { part, key } = this
    const nowUs = part.decisions.nowUs()
    part.hash(key)
    return part.decisions.answered(verb(nowUs, part), key)
  }
}
