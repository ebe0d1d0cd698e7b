import type { KeyReader, RequestFacts } from '../keys/key-reader.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { type Warn, warnOnce } from '../warn-once.js'

/** So many of one policy, each made for a request and asked about no other. */
const MOST_MADE = 30
const MOST_POLICIES = 1_000
const MOST_AT_ONCE = 10
/** How many requests are looked at; afterwards nothing is spent on it, and no request is held. */
const LOOKED_AT = 1_000
/** How many have to come without the header of a trusted proxy: checks of health come without, too. */
const WITHOUT_PROXY = 100

const PROXY_HEADERS = ['x-forwarded-for', 'forwarded', 'x-real-ip'] as const

/** Notices a key that one limiter counts twice for one request. */
export interface Tally {
  /** False once it has seen enough: it need not be told any more. */
  count(request: unknown, key: Key): boolean
}

/** Facts of a request that may know whether it came over a socket. */
export interface ReceivedFacts extends RequestFacts {
  readonly isReceived?: boolean
}

/** Looks at how limits are put to use, and warns. */
export class MisuseWatch {
  private readonly warn: Warn
  private readonly tallies = new WeakMap<object, Tally>()
  /** Limits of a policy that were made for a request each; undefined once one of them was asked about another. */
  private readonly made = new Map<string, number | undefined>()
  /** Policies of the limits that were made in this very run of code. */
  private fresh: readonly Policy[] = []

  constructor(emit?: Warn) {
    this.warn = warnOnce(emit)
  }

  /** A limit was made for this policy. */
  making(policy: Policy): void {
    if (this.fresh.length === 0) {
      queueMicrotask(() => {
        this.fresh = []
      })
    }
    this.fresh = [...this.fresh.slice(0, MOST_AT_ONCE), policy]
  }

  /**
   * The first request that a limit is asked about. Limits that were made in the same run of code were made for it, if it came over a socket:
   * that takes a turn of the event loop, and tests that make a request of their own right after the limit have none.
   *
   * @returns what is to be called at the second one, if any.
   */
  serving(isReceived: boolean): (() => undefined) | undefined {
    const { fresh } = this
    if (!isReceived || fresh.length === 0) return undefined
    this.fresh = []
    const kinds = fresh.map(({ name, limit, windowMs }) => [`${name} ${limit} ${windowMs}`, name] as const)
    for (const [kind, name] of kinds) this.count(kind, name)
    return () => {
      for (const [kind] of kinds) if (this.made.has(kind)) this.made.set(kind, undefined)
      return undefined
    }
  }

  private count(kind: string, name: string): void {
    if (!this.made.has(kind) && this.made.size >= MOST_POLICIES) return
    const made = this.made.has(kind) ? this.made.get(kind) : 0
    // They are kept and used again, as those of a map of tenants.
    if (made === undefined) return
    this.made.set(kind, made + 1)
    if (made + 1 < MOST_MADE) return
    this.warn(
      'SLUICEGATE_LIMITER_PER_REQUEST',
      `${made + 1} limits of the policy '${name}' were made, each for one request: make it once, outside the handler, or each starts afresh`,
      kind,
    )
  }

  /** The tally of a limiter, shared by all that ask it. */
  tallyOf(limiter: object & { readonly policy?: Policy }): Tally {
    const known = this.tallies.get(limiter)
    if (known !== undefined) return known
    const name = limiter.policy?.name ?? ''
    let looks = 0
    let lastRequest: unknown
    let lastKey: Key | undefined
    const tally: Tally = {
      count: (request, key) => {
        if (looks >= LOOKED_AT) return false
        if (request === lastRequest && isSameKey(key, lastKey)) {
          const message = 'counted one request twice for the same key: is its middleware there twice?'
          this.warn('SLUICEGATE_COUNTED_TWICE', `the limiter of the policy '${name}' ${message}`, name)
        }
        looks++
        const looksOn = looks < LOOKED_AT
        lastRequest = looksOn ? request : undefined
        lastKey = key
        return looksOn
      },
    }
    this.tallies.set(limiter, tally)
    return tally
  }

  /** A look at requests for as long as it takes, or undefined when keys are not addresses. */
  proxyCheck(readers: readonly KeyReader<never>[]): ((facts: RequestFacts) => boolean) | undefined {
    const trusted = readers.flatMap((reader) => ('header' in reader ? [reader.header as string | undefined] : []))
    if (trusted.length === 0) return undefined
    const header = trusted.find((name) => name !== undefined)
    return header === undefined ? this.untrusted() : this.missing(header)
  }

  private untrusted(): (facts: RequestFacts) => boolean {
    let looks = 0
    return (facts) => {
      const header = PROXY_HEADERS.find((name) => facts.header(name) !== undefined)
      if (header === undefined) return ++looks < LOOKED_AT
      this.warn(
        'SLUICEGATE_PROXY_UNTRUSTED',
        `a request came with ${header}, and no hop is trusted: if a proxy of yours stands in front, all its clients share one key; say address({ trustedHops: 1 })`,
      )
      return false
    }
  }

  private missing(header: string): (facts: RequestFacts) => boolean {
    let looks = 0
    return (facts) => {
      if (facts.header(header) !== undefined) return false
      if (++looks < WITHOUT_PROXY) return true
      this.warn(
        'SLUICEGATE_PROXY_MISSING',
        `${looks} requests came without ${header}, though a proxy is trusted to set it: if none stands in front, clients may choose their own key; say address()`,
      )
      return false
    }
  }
}

function isSameKey(a: Key, b: Key | undefined): boolean {
  if (typeof a === 'string' || typeof b === 'string' || b === undefined) return a === b
  return a.length === b.length && a.every((key, i) => key === b[i])
}
