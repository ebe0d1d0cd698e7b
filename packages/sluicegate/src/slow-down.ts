import { ignore, isPromise } from './awaitable.js'
import type { Decision } from './decision.js'
import { PolicyError } from './errors.js'
import type { After } from './kept-permit.js'
import { checkInteger, checkOptions } from './options/option-checks.js'
import { type Duration, toMs } from './policy/duration.js'
import type { Policy } from './policy/policy.js'

/** When requests are delayed before they go on, and for how long. What the limit denies is denied as ever. */
export interface SlowDownOptions<Request> {
  /** So many tokens of a key may be in use before its requests are delayed, 0 to 1,000,000,000. */
  readonly after: number
  /** How long, or a function that says it in milliseconds: `(over) => over * 100`, where `over` is 1 for the first token above `after`. */
  readonly delay: Duration | ((over: number, request: Request) => number)
  /** No request is delayed for longer, at most 1 h; default 30 s. */
  readonly maxDelay?: Duration
  /** So many requests of a key may be delayed at once, 1 to 1,000,000, default 10: those above are denied and cost nothing. */
  readonly maxDelayedPerKey?: number
  /** The same of all keys together, default 1,000. */
  readonly maxDelayed?: number
}

const NAMES: readonly string[] = ['after', 'delay', 'maxDelay', 'maxDelayedPerKey', 'maxDelayed'] satisfies (keyof SlowDownOptions<never>)[]
const EXAMPLE = '{ after: 50, delay: (over) => over * 100 }'
const LONGEST_MS = 3_600_000
const DEFAULT_MAX_MS = 30_000
const MOST_TOKENS = 1_000_000_000
const MOST_DELAYED = 1_000_000

/** A request that is to be delayed, and has a place among those that are. */
export interface Delay {
  readonly ms: number
  /** Lets go of the place. */
  readonly leave: () => void
}

/** The option, read: how long requests are delayed, and how many at once. */
export class SlowDown<Request> {
  private readonly after: number
  private readonly delay: number | ((over: number, request: Request) => number)
  private readonly maxMs: number
  private readonly mostOfKey: number
  private readonly most: number
  private readonly byKey = new Map<string, number>()
  private delayed = 0

  /** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`, `DURATION_INVALID` */
  constructor(options: SlowDownOptions<Request>) {
    checkOptions(options, NAMES, EXAMPLE)
    const { after, delay, maxDelay = DEFAULT_MAX_MS, maxDelayedPerKey = 10, maxDelayed = 1_000 } = options
    checkInteger('slowDown.after', after, 0, MOST_TOKENS)
    checkInteger('slowDown.maxDelayedPerKey', maxDelayedPerKey, 1, MOST_DELAYED)
    checkInteger('slowDown.maxDelayed', maxDelayed, 1, MOST_DELAYED)
    this.after = after
    this.delay = typeof delay === 'function' ? delay : toMs(delay, 'slowDown.delay')
    this.maxMs = toMs(maxDelay, 'slowDown.maxDelay')
    if (this.maxMs > LONGEST_MS) throw new PolicyError('DURATION_INVALID', 'slowDown.maxDelay', maxDelay, 'must be at most 1 h')
    this.mostOfKey = maxDelayedPerKey
    this.most = maxDelayed
  }

  /**
   * Milliseconds for which a request that was allowed is delayed. What was decided without the store is not: nobody knows what is in use.
   *
   * @throws {PolicyError} `OPTION_INVALID` where the function gives no time, and what it throws.
   */
  delayMs({ remaining, source, wouldDeny, parts }: Decision, { burst, policies }: Policy, request: Request): number {
    if (source === 'outage' || wouldDeny === true) return 0
    const used = parts === undefined ? burst - remaining : Math.max(...parts.map((part, i) => (policies?.[i]?.burst ?? 0) - part.remaining))
    const over = used - this.after
    if (over <= 0) return 0
    const ms: unknown = typeof this.delay === 'number' ? this.delay : this.delay(over, request)
    if (typeof ms === 'number' && ms >= 0) return Math.min(ms, this.maxMs)
    if (isPromise(ms)) ignore(ms)
    throw new PolicyError('OPTION_INVALID', 'slowDown.delay', ms, 'must give milliseconds >= 0, at once')
  }

  /** A place among the delayed; undefined where there is none. */
  enter(key: string): (() => void) | undefined {
    const ofKey = this.byKey.get(key) ?? 0
    if (this.delayed >= this.most || ofKey >= this.mostOfKey) return undefined
    this.delayed++
    this.byKey.set(key, ofKey + 1)
    return () => {
      this.delayed--
      const left = (this.byKey.get(key) ?? 1) - 1
      if (left === 0) this.byKey.delete(key)
      else this.byKey.set(key, left)
    }
  }
}

/** Who waits for a delay, and may go away before. */
interface Awaiting {
  whenGone?(tell: () => void): void
}

/** Goes on with `value` when the delay is over, or at once when the client has gone: then nothing waits any more. */
export function afterDelay<Value>({ ms, leave }: Delay, value: Value, waits: Awaiting, after: After): Promise<Value> {
  return new Promise((resolve, reject) => {
    let isOver = false
    let cancel = (): void => {}
    const end = (): void => {
      if (isOver) return
      isOver = true
      cancel()
      leave()
      resolve(value)
    }
    try {
      cancel = after(ms, end)
    } catch (error) {
      leave()
      reject(error)
      return
    }
    waits.whenGone?.(end)
  })
}
