/**
 * Pays for the tokens with which a new token bucket begins. A bucket of Envoy is full when its numbers change, so each change adds tokens that no
 * rate accounts for. A payment is held until the change has arrived, since the tokens exist only from then on: in any interval at most `capacity`
 * and what was filled meanwhile arrives.
 */
export class BurstLedger {
  #capacity: number
  #level: number
  #held = 0

  /** @param level the tokens at the start; the capacity at most. */
  constructor(capacity: number, level = capacity) {
    this.#capacity = capacity
    this.#level = Math.min(level, capacity)
  }

  /** Tokens that can be paid now. */
  get level(): number {
    return this.#level
  }

  /** Whether more cannot be filled in. */
  get isFull(): boolean {
    return this.#level + this.#held >= this.#capacity
  }

  fill(tokens: number): void {
    this.#level = Math.max(this.#level, Math.min(this.#capacity - this.#held, this.#level + tokens))
  }

  /** The caller has checked that the level suffices. */
  pay(tokens: number): void {
    this.#level -= tokens
    this.#held += tokens
  }

  /** The message that was paid for has arrived, or is lost: the tokens are spent, or were not needed. */
  settle(tokens: number, isSpent: boolean): void {
    this.#held -= tokens
    if (!isSpent) this.#level += tokens
  }

  resize(capacity: number): void {
    this.#capacity = capacity
    this.#level = Math.min(this.#level, capacity - this.#held)
  }
}

/** Places in bounded number, of which each host may have half. */
export class Places {
  readonly #max: number
  readonly #byHost = new Map<string, number>()
  #taken = 0

  constructor(max: number) {
    this.#max = max
  }

  get taken(): number {
    return this.#taken
  }

  /** False where there is no room. */
  take(host: string): boolean {
    const ofHost = this.#byHost.get(host) ?? 0
    if (this.#taken >= this.#max || ofHost >= Math.ceil(this.#max / 2)) return false
    this.#taken++
    this.#byHost.set(host, ofHost + 1)
    return true
  }

  giveBack(host: string): void {
    this.#taken--
    const left = (this.#byHost.get(host) ?? 1) - 1
    if (left === 0) this.#byHost.delete(host)
    else this.#byHost.set(host, left)
  }
}
