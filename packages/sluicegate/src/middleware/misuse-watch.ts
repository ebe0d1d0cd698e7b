import type { KeyReader, RequestFacts } from '../keys/key-reader.js'
import type { Key } from '../limiter.js'
import { onceInProcess } from '../once-in-process.js'
import type { Policy } from '../policy/policy.js'
import { type Warn, warnOnce } from '../warn-once.js'

/** Limits of one policy, each made for one request and used for no other, before a warning; two when they count the same key. */
const MAX_MADE = 30
const MAX_POLICIES = 1_000
const MAX_AT_ONCE = 10
/** Requests that are checked; afterwards checks cost nothing and no request is retained. */
const CHECKED_REQUESTS = 1_000
/** Requests without the header of a trusted proxy before a warning: health checks come without it. */
const REQUESTS_WITHOUT_PROXY = 100

const PROXY_HEADERS = ['x-forwarded-for', 'forwarded', 'x-real-ip'] as const

/** Detects a key that one limiter counts twice for one request. */
export interface Tally {
  /** False once enough requests were checked: it need not be called again. */
  count(request: unknown, key: Key): boolean
}

/** Facts of a request, with whether it came over a socket where that is known. */
export interface ReceivedFacts extends RequestFacts {
  readonly isReceived?: boolean
}

/** Requests that one limiter may count several times for the same key, each time meant. */
const countedOften = /* @__PURE__ */ onceInProcess('requests counted often', () => new WeakSet<object>())

/** Of this request a limiter counts parts, such as fields of GraphQL. */
export function countsParts(request: object): void {
  countedOften.add(request)
}

/** Detects common misuse of limits, and warns of it. */
export class MisuseWatch {
  private readonly warn: Warn
  private readonly tallies = new WeakMap<object, Tally>()
  /** By policy: how many limits were made for one request each; undefined once one of them was used for a second request. */
  private readonly made = new Map<string, number | undefined>()
  /** Policies of the limits that were made in this run of the event loop. */
  private fresh: readonly Policy[] = []
  /** Kinds of the limits that were made for the request that is being handled. */
  private current: readonly string[] = []
  /** By kind: the key that the last limit made for one request counted first. */
  private readonly firstKeys = new Map<string, Key>()

  constructor(emit?: Warn) {
    this.warn = warnOnce(emit)
  }

  /** A limit of this policy was made. */
  limitMade(policy: Policy): void {
    if (this.fresh.length === 0) {
      queueMicrotask(() => {
        this.fresh = []
        this.current = []
      })
    }
    this.fresh = [...this.fresh.slice(0, MAX_AT_ONCE), policy]
  }

  /**
   * The first request of a limit. If limits were made in the same run of the event loop, they were made for this request: a request over a socket
   * arrives in a later run than middleware that is made when the app starts. Tests that make requests without a socket are not counted.
   *
   * @returns a function to call at the second request, if any.
   */
  firstRequest(isReceived: boolean): (() => undefined) | undefined {
    const { fresh } = this
    if (!isReceived || fresh.length === 0) return undefined
    this.fresh = []
    const kinds = fresh.map(kindOf)
    for (const [i, kind] of kinds.entries()) this.count(kind, (fresh[i] as Policy).name)
    this.current = kinds
    return () => {
      for (const kind of kinds) if (this.made.has(kind)) this.made.set(kind, undefined)
      return undefined
    }
  }

  private count(kind: string, name: string): void {
    if (!this.made.has(kind) && this.made.size >= MAX_POLICIES) return
    const made = this.made.has(kind) ? this.made.get(kind) : 0
    // Limits that are kept and used again, such as those of a map of tenants.
    if (made === undefined) return
    this.made.set(kind, made + 1)
    if (made + 1 >= MAX_MADE) this.warnOfMade(kind, name)
  }

  /** A limit counts its first key. Two that were made for one request each and count the same key are one too many. */
  private firstKey({ policy, key }: { readonly policy: Policy; readonly key: Key }): void {
    const kind = kindOf(policy)
    if (!this.current.includes(kind) || this.made.get(kind) === undefined) return
    if (isSameKey(key, this.firstKeys.get(kind))) this.warnOfMade(kind, policy.name)
    else this.firstKeys.set(kind, key)
  }

  private warnOfMade(kind: string, name: string): void {
    const message = `${this.made.get(kind)} limits of the policy '${name}' were made, each for one request`
    this.warn('SLUICEGATE_LIMITER_PER_REQUEST', `${message}: make it once, outside the handler, or each starts afresh`, kind)
  }

  /** The tally of a limiter, shared by all middleware that uses it. */
  tallyOf(limiter: object & { readonly policy?: Policy }): Tally {
    const known = this.tallies.get(limiter)
    if (known !== undefined) return known
    // Read once: a limiter that is closed has none, and its requests are an outage.
    const { policy } = limiter
    const name = policy?.name ?? ''
    let checked = 0
    let lastRequest: unknown
    let lastKey: Key | undefined
    const tally: Tally = {
      count: (request, key) => {
        if (checked >= CHECKED_REQUESTS) return false
        if (checked === 0 && policy !== undefined) this.firstKey({ policy, key })
        if (request === lastRequest && isSameKey(key, lastKey) && !countedOften.has(request as object)) {
          const message = 'counted one request twice for the same key: is its middleware there twice?'
          this.warn('SLUICEGATE_COUNTED_TWICE', `the limiter of the policy '${name}' ${message}`, name)
        }
        checked++
        const goesOn = checked < CHECKED_REQUESTS
        lastRequest = goesOn ? request : undefined
        lastKey = key
        return goesOn
      },
    }
    this.tallies.set(limiter, tally)
    return tally
  }

  /** A check of requests, to call until it returns false; undefined when keys are not addresses. */
  proxyCheck(readers: readonly KeyReader<never>[]): ((facts: RequestFacts) => boolean) | undefined {
    const trusted = readers.flatMap((reader) => ('header' in reader ? [reader.header as string | undefined] : []))
    if (trusted.length === 0) return undefined
    const header = trusted.find((name) => name !== undefined)
    return header === undefined ? this.untrustedProxyCheck() : this.missingProxyCheck(header)
  }

  private untrustedProxyCheck(): (facts: RequestFacts) => boolean {
    let checked = 0
    return (facts) => {
      const header = PROXY_HEADERS.find((name) => facts.header(name) !== undefined)
      if (header === undefined) return ++checked < CHECKED_REQUESTS
      this.warn(
        'SLUICEGATE_PROXY_UNTRUSTED',
        `a request came with ${header}, and no hop is trusted: if a proxy of yours stands in front, all its clients share one key; say address({ trustedHops: 1 })`,
      )
      return false
    }
  }

  private missingProxyCheck(header: string): (facts: RequestFacts) => boolean {
    let checked = 0
    return (facts) => {
      if (facts.header(header) !== undefined) return false
      if (++checked < REQUESTS_WITHOUT_PROXY) return true
      this.warn(
        'SLUICEGATE_PROXY_MISSING',
        `${checked} requests came without ${header}, though a proxy is trusted to set it: if no proxy stands in front, clients may choose their own key; say address()`,
      )
      return false
    }
  }
}

function kindOf({ name, limit, windowMs }: Policy): string {
  return `${name} ${limit} ${windowMs}`
}

function isSameKey(a: Key, b: Key | undefined): boolean {
  if (typeof a === 'string' || typeof b === 'string' || b === undefined) return a === b
  return a.length === b.length && a.every((key, i) => key === b[i])
}
