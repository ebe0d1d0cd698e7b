import type { KeyReader } from '../keys/key-reader.js'
import type { RequestFacts } from '../keys/request-facts.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { type Warn, warnOnce } from './warning.js'

/** So many of one policy made while requests are served are made by requests. */
const MOST_MADE = 10
const MOST_POLICIES = 1_000
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

/** Looks at how limits are put to use, and warns. */
export class MisuseWatch {
  private readonly warn: Warn
  private readonly tallies = new WeakMap<object, Tally>()
  private readonly made = new Map<string, number>()
  private isServing = false

  constructor(emit?: Warn) {
    this.warn = warnOnce(emit)
  }

  /** A request is being decided. */
  serving(): void {
    this.isServing = true
  }

  /** A gatekeeper was made for this policy. */
  making({ name, limit, windowMs }: Policy): void {
    if (!this.isServing || this.made.size > MOST_POLICIES) return
    const content = `${name} ${limit} ${windowMs}`
    const made = (this.made.get(content) ?? 0) + 1
    this.made.set(content, made)
    if (made < MOST_MADE) return
    this.warn(
      'SLUICEGATE_LIMITER_PER_REQUEST',
      `${made} limits of the policy '${name}' were made while requests are served: make it once, outside the handler, or each starts afresh`,
    )
  }

  /** The tally of a limiter, shared by all that ask it. */
  tallyOf(limiter: object): Tally {
    const known = this.tallies.get(limiter)
    if (known !== undefined) return known
    let looks = 0
    let lastRequest: unknown
    let lastKey: Key | undefined
    const tally: Tally = {
      count: (request, key) => {
        if (looks >= LOOKED_AT) return false
        if (request === lastRequest && String(key) === String(lastKey)) {
          this.warn('SLUICEGATE_COUNTED_TWICE', 'one limiter counted one request twice for the same key: is its middleware there twice?')
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
