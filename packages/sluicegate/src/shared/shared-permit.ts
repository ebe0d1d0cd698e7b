import type { Decision, DecisionSource } from '../decision.js'
import { emptyPermit } from '../permit.js'
import type { FleetPermit } from './fleet-limiter.js'

/** Releases or renews a permit at the backend; true if it was still held. */
export type AskAboutPermit = (verb: 'release' | 'heartbeat') => Promise<boolean>

/** A permit that the backend holds. Of a denied decision it holds nothing. */
export class SharedPermit implements FleetPermit {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number
  readonly resetAfterMs: number
  readonly policy: string
  readonly source: DecisionSource
  declare readonly parts?: readonly Decision[]
  declare readonly wouldDeny?: true
  #ask: AskAboutPermit | undefined
  #released: () => void = () => undefined

  constructor(decision: Decision, ask?: AskAboutPermit) {
    const { allowed, limit, remaining, retryAfterMs, resetAfterMs, policy, source, parts, wouldDeny } = decision
    this.allowed = allowed
    this.limit = limit
    this.remaining = remaining
    this.retryAfterMs = retryAfterMs
    this.resetAfterMs = resetAfterMs
    this.policy = policy
    this.source = source
    if (parts !== undefined) this.parts = parts
    if (wouldDeny !== undefined) this.wouldDeny = wouldDeny
    this.#ask = allowed ? ask : undefined
  }

  /** A permit that takes no place at the backend. For its holder it is like any other until it is released. */
  static empty(decision: Decision): SharedPermit {
    const own = emptyPermit(decision)
    return new SharedPermit(decision, async (verb) => own[verb]())
  }

  /** Calls `released` once the place is free again. */
  onRelease(released: () => void): void {
    this.#released = released
  }

  async release(): Promise<boolean> {
    const ask = this.#ask
    this.#ask = undefined
    const isReleased = (await ask?.('release')) ?? false
    if (isReleased) this.#released()
    return isReleased
  }

  async heartbeat(): Promise<boolean> {
    const ask = this.#ask
    const isRenewed = (await ask?.('heartbeat')) ?? false
    if (!isRenewed && this.#ask === ask) this.#ask = undefined
    return isRenewed
  }

  [Symbol.dispose](): void {
    // If this fails, the permit ends after `ttl`.
    this.release().catch(() => undefined)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }
}
