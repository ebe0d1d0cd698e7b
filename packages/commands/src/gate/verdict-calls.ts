import type { VerdictInForce } from 'sluicegate/gate'
import type { ServiceClient } from '../service/service-client.js'

/** A block that was prolonged is sent again when the service's one has only this share of its time left. */
const RENEW_SHARE = 0.5
/** Calls under way at once. */
const CALLS_AT_ONCE = 8
/** Calls are started for this long: then there is a newer list, and what is still due on it comes first. */
const STARTING_MS = 2_000

/** Which policy of a service verdicts go to. */
export interface CallOptions {
  readonly policy: string
  /** Tokens that a throttled key is charged, once for each verdict; undefined: only blocks are sent. */
  readonly penalty: number | undefined
  readonly nowMs: () => number
}

/** What the service was sent about a key. */
interface Sent {
  readonly verdict: string
  readonly sentMs: number
  readonly untilMs: number
}

/** Sends blocks and penalties to a running service. A call that failed is made again with the next list. */
export class VerdictCalls {
  /** Calls that failed since the start. */
  failed = 0
  made = 0
  readonly #client: ServiceClient
  readonly #options: CallOptions
  #sent = new Map<string, Sent>()

  constructor(client: ServiceClient, options: CallOptions) {
    this.#client = client
    this.#options = options
  }

  /** Returns why a call failed, of the first that did. */
  async write(verdicts: readonly VerdictInForce[]): Promise<string | undefined> {
    const nowMs = this.#options.nowMs()
    const due = verdicts.filter((each) => this.#isDue(each, nowMs))
    // A key without a verdict is forgotten: memory goes by the verdicts in force.
    const kept = new Map<string, Sent>()
    for (const { key } of verdicts) {
      const sent = this.#sent.get(key)
      if (sent !== undefined) kept.set(key, sent)
    }
    this.#sent = kept
    let fault: string | undefined
    let next = 0
    const endMs = performance.now() + STARTING_MS
    const work = async (): Promise<void> => {
      for (let each = due[next++]; each !== undefined && performance.now() < endMs; each = due[next++]) {
        const failed = await this.#send(each, nowMs)
        fault ??= failed
      }
    }
    await Promise.all(Array.from({ length: CALLS_AT_ONCE }, work))
    return fault
  }

  #isDue({ key, verdict, untilMs }: VerdictInForce, nowMs: number): boolean {
    if (verdict === 'flag' || (verdict === 'throttle' && this.#options.penalty === undefined) || untilMs <= nowMs) return false
    const sent = this.#sent.get(key)
    if (sent === undefined || sent.verdict !== verdict) return true
    return verdict === 'block' && untilMs > sent.untilMs && sent.untilMs - nowMs < RENEW_SHARE * (sent.untilMs - sent.sentMs)
  }

  async #send({ key, verdict, untilMs }: VerdictInForce, nowMs: number): Promise<string | undefined> {
    const { policy, penalty } = this.#options
    const forMs = Math.ceil(untilMs - nowMs)
    const call =
      verdict === 'block' ? this.#post('/v1/block', { policy, key, forMs }) : this.#post('/v1/penalize', { policy, key, tokens: penalty })
    const fault = await call
    this.made++
    if (fault === undefined) this.#sent.set(key, { verdict, sentMs: nowMs, untilMs })
    else this.failed++
    return fault
  }

  async #post(path: string, body: object): Promise<string | undefined> {
    try {
      const { status, body: answer } = await this.#client.post(path, body)
      return status === 200 ? undefined : `${path} was answered with ${status}: ${answer.slice(0, 200)}`
    } catch (error) {
      return (error as Error).message
    }
  }
}
