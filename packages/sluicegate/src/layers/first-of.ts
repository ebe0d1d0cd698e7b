import { type Awaitable, chained, type When } from '../awaitable.js'
import { bindsMore, type Decision } from '../decision/decision.js'
import { type Reservation, type Settling, TAKE, WAIT } from '../decision/reservation.js'
import { PolicyError } from '../errors.js'
import { heldAs } from '../holds/held-as.js'
import type { OpenOptions } from '../holds/hold.js'
import type { AnyHold } from '../holds/metered.js'
import { type Key, type KeysByName, keysOf } from '../key.js'
import type { LimiterVerbs, ReserveOptions, WaitOptions } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { closeQueueOf, QueuedLimiter } from '../queue/create-queue.js'
import type { Duration } from '../time/duration.js'
import { policyIn, settling } from './layer.js'

/** A limiter that may be one of several sources, in memory or over a store. */
export interface FirstOfSource extends LimiterVerbs {
  open?(key: Key | KeysByName, options?: OpenOptions): Awaitable<AnyHold>
}

/** What several sources do as one, see {@link firstOf}. */
export interface FirstOf extends Omit<LimiterVerbs<Decision, When, Key | KeysByName>, 'update' | 'hotKeys' | 'key' | 'peek' | 'take'> {
  /** The sources, the first one first. Correct what one of them charged, or top it up, by its own verbs. */
  readonly sources: readonly FirstOfSource[]
  take(key: Key | KeysByName, cost?: number): Awaitable<Decision>
  peek(key: Key | KeysByName, cost?: number): Awaitable<Decision>
  /** Work that spends from the first source with room, and where that has none left, from the next one. */
  open(key: Key | KeysByName, options?: OpenOptions): Awaitable<AnyHold>
}

const MOST_SOURCES = 8

/**
 * Several limiters as one: a cost is charged to the first that has room for it, such as a plan and then credits. `policy` of a decision says to
 * which; a denial is that of the source that would pass first. Each charge is one step at one source, and what a source denies has changed nothing
 * there, so no source is ever over, and nothing is charged twice. A source that cannot be reached, and denies for that, is not passed over: its outage
 * spends nobody's credits.
 *
 * Of keys for the {@link levels} of the first source, each later one takes those of the levels that it has.
 *
 * @param sources 1 to 8 limiters, in memory or over a store each, with different names.
 * @throws {PolicyError} `OPTION_INVALID`, `NAME_INVALID`
 * @example
 * const prepaid = createLimiter(credits({ limit: 100_000, name: 'prepaid' }), { store: postgres(pool) })
 * const limiter = firstOf([createLimiter(plan, { store: redis(client) }), prepaid])
 * const { policy } = await limiter.take('ada', 20) // 'prepaid', once the plan is spent
 * await prepaid.refund('ada', 5_000) // a top-up
 */
export function firstOf(sources: readonly FirstOfSource[]): FirstOf {
  if (!Array.isArray(sources) || sources.length < 1 || sources.length > MOST_SOURCES) {
    throw new PolicyError('OPTION_INVALID', 'sources', sources, `must be an array of 1 to ${MOST_SOURCES} limiters`)
  }
  for (const [i, source] of sources.entries()) {
    if (typeof source?.take !== 'function' || !(TAKE in source)) {
      throw new PolicyError('OPTION_INVALID', `sources[${i}]`, source, 'must be a limiter such as createLimiter(policy)')
    }
    const twice = sources.slice(0, i).some(({ policy }) => policy.name === source.policy.name)
    if (twice) throw new PolicyError('NAME_INVALID', 'name', source.policy.name, 'is the name of two sources: give each policy its own')
  }
  return new FirstOfLimiter([...sources])
}

class FirstOfLimiter extends QueuedLimiter implements FirstOf, Settling {
  readonly sources: readonly FirstOfSource[]

  constructor(sources: readonly FirstOfSource[]) {
    super()
    this.sources = sources
  }

  /** That of the first source. */
  get policy(): Policy {
    return this.first.policy
  }

  /** The policy of the source that a decision is of. */
  policyOf(key: Key | KeysByName, decision?: Decision): Policy {
    const source = this.sources.find(({ policy }) => isOf(policy, decision)) ?? this.first
    return policyIn(source, this.keyAt(source, key))
  }

  take(key: Key | KeysByName, cost = 1): Awaitable<Decision> {
    return this.firstBy((source) => source.take(this.keyAt(source, key), cost), itself)
  }

  [TAKE](key: Key | KeysByName, cost = 1): Awaitable<Reservation<When>> {
    return this.firstBy((source) => settling(source)[TAKE](this.keyAt(source, key), cost), decisionOf)
  }

  peek(key: Key | KeysByName, cost = 1): Awaitable<Decision> {
    return this.firstBy((source) => source.peek(this.keyAt(source, key), cost), itself)
  }

  /** Waits at the source that would pass first, unless one passes now. */
  async wait(key: Key | KeysByName, options: WaitOptions = {}): Promise<Decision> {
    return (await this[WAIT](key, options)).decision
  }

  async [WAIT](key: Key | KeysByName, options: WaitOptions = {}): Promise<Reservation<When>> {
    const { cost = 1, signal } = options
    if (signal?.aborted) throw signal.reason
    const taken = await this[TAKE](key, cost)
    if (taken.allowed || taken.waitMs === Number.POSITIVE_INFINITY) return taken
    const source = this.sourceOf(taken.decision)
    return settling(source)[WAIT](this.keyAt(source, key), options)
  }

  /** Books at the source where the tokens may be spent first. */
  reserve(key: Key | KeysByName, cost: number, options?: ReserveOptions): Awaitable<Reservation<When>> {
    const now = this.firstBy(
      (source): Awaitable<Reservation<When>> => source.reserve(this.keyAt(source, key), cost, { ...options, maxWait: 0 }),
      decisionOf,
    )
    return chained(now, (made): Awaitable<Reservation<When>> => {
      if (made.allowed || options?.maxWait === 0) return made
      const source = this.sourceOf(made.decision)
      return source.reserve(this.keyAt(source, key), cost, options)
    })
  }

  open(key: Key | KeysByName, options: OpenOptions = {}): Awaitable<AnyHold> {
    return chained(this.opened(key, options, 0), ({ hold, next }) =>
      hold.allowed ? new SpreadHold(this, key, options, hold, next).hold : hold,
    )
  }

  /** Opens at the first source from `from` on that has room. @returns also the source to go on with. */
  opened(key: Key | KeysByName, options: OpenOptions, from: number): Awaitable<{ readonly hold: AnyHold; readonly next: number }> {
    const last = this.sources.length - 1
    const at = (i: number, denied: AnyHold | undefined): Awaitable<{ readonly hold: AnyHold; readonly next: number }> => {
      const source = this.sources[i] as FirstOfSource
      if (typeof source.open !== 'function') {
        throw new PolicyError('OPTION_INVALID', 'sources', source.policy.name, 'has no holds')
      }
      // What waits at a source, or goes into debt there, never reaches the next one.
      const own = i === last ? options : { ...options, over: 'cut' as const }
      return chained(source.open(this.keyAt(source, key), own), (hold) => {
        const best = denied !== undefined && !bindsMore(denied, hold) ? denied : hold
        if (hold.allowed) return { hold, next: i + 1 }
        return i === last || isOut(hold) ? { hold: isOut(hold) ? hold : best, next: i + 1 } : at(i + 1, best)
      })
    }
    return at(from, undefined)
  }

  /** Gives back to the first source. */
  refund(key: Key | KeysByName, tokens: number): Awaitable<Decision> & Promise<Decision> {
    return this.first.refund(this.keyAt(this.first, key), tokens) as Awaitable<Decision> & Promise<Decision>
  }

  /** Charges the first source. */
  penalize(key: Key | KeysByName, tokens: number): Awaitable<Decision> & Promise<Decision> {
    return this.first.penalize(this.keyAt(this.first, key), tokens) as Awaitable<Decision> & Promise<Decision>
  }

  block(key: Key | KeysByName, duration: Duration): Awaitable<Decision> & Promise<Decision> {
    return this.eachOne((source) => source.block(this.keyAt(source, key), duration))
  }

  reset(key: Key | KeysByName): Awaitable<Decision> & Promise<Decision> {
    return this.eachOne((source) => source.reset(this.keyAt(source, key)))
  }

  close(): void {
    closeQueueOf(this)
    for (const source of this.sources) source.close()
  }

  /**
   * The keys of a source: of those for the levels of the first one, those of its own levels, by their names.
   *
   * @throws {PolicyError} `KEY_INVALID`
   */
  keyAt(source: FirstOfSource, key: Key | KeysByName): Key {
    if (source === this.first || typeof key === 'string') return key as Key
    const { name, policies } = source.policy
    const given = keysOf(this.first.policy, key)
    const byLevel = new Map(this.first.policy.policies?.map((level, i) => [level.name, given[i] as string]))
    const own = policies?.map((level) => byLevel.get(level.name))
    if (own !== undefined && !own.includes(undefined)) return own as readonly string[]
    if (own?.length === given.length && Array.isArray(key)) return key
    const mend = `must be one string for '${name}', whose levels are not among ${[...byLevel.keys()].join(', ')}: make it by levels({ ... }) of these`
    throw new PolicyError('KEY_INVALID', 'key', key, mend)
  }

  private get first(): FirstOfSource {
    return this.sources[0] as FirstOfSource
  }

  private sourceOf(decision: Decision): FirstOfSource {
    return this.sources.find(({ policy }) => isOf(policy, decision)) ?? this.first
  }

  /** Asks one source after the other, up to the first that allows it; then the denial that ends first. */
  private firstBy<Answer>(ask: (source: FirstOfSource) => Awaitable<Answer>, of: (answer: Answer) => Decision): Awaitable<Answer> {
    const at = (i: number, denied: Answer | undefined): Awaitable<Answer> =>
      chained(ask(this.sources[i] as FirstOfSource), (answer) => {
        const decision = of(answer)
        if (decision.allowed || isOut(decision)) return answer
        const best = denied === undefined || bindsMore(of(denied), decision) ? answer : denied
        return i + 1 < this.sources.length ? at(i + 1, best) : best
      })
    return at(0, undefined)
  }

  private eachOne(change: (source: FirstOfSource) => Awaitable<Decision>): Awaitable<Decision> & Promise<Decision> {
    const at = (i: number, first: Decision | undefined): Awaitable<Decision> => {
      const source = this.sources[i]
      return source === undefined ? (first as Decision) : chained(change(source), (made) => at(i + 1, first ?? made))
    }
    return at(0, undefined) as Awaitable<Decision> & Promise<Decision>
  }
}

/** Work over several sources: each piece is spent at one, from the one that it began with on. */
class SpreadHold {
  readonly hold: AnyHold
  private readonly limiter: FirstOfLimiter
  private readonly key: Key | KeysByName
  private readonly options: OpenOptions
  private readonly parts: AnyHold[]
  private next: number
  /** Pieces come one after the other where a source answers later. */
  private last: Promise<unknown> | undefined
  private isClosed = false

  constructor(limiter: FirstOfLimiter, key: Key | KeysByName, options: OpenOptions, first: AnyHold, next: number) {
    this.limiter = limiter
    this.key = key
    this.options = options
    this.parts = [first]
    this.next = next
    const sum = (of: (part: AnyHold) => number): number => this.parts.reduce((total, part) => total + of(part), 0)
    const hold = heldAs(first, first, { add: (cost) => this.add(cost), close: (cost) => this.close(cost) as Decision })
    this.hold = Object.defineProperties(hold, {
      held: { get: () => sum(({ held }) => held) },
      used: { get: () => sum(({ used }) => used) },
      over: { get: () => sum(({ over }) => over) },
      affordable: { value: (price: number) => this.affordable(price) },
    })
  }

  private add(cost: number): Awaitable<boolean> {
    if (this.last === undefined) return this.addNow(cost)
    return this.last.then(() => this.addNow(cost))
  }

  private addNow(cost: number): Awaitable<boolean> {
    const { most = Number.POSITIVE_INFINITY } = this.options
    // Of the whole work, not of what one source has of it.
    if (this.isClosed || cost > most - this.hold.used) return false
    const added = chained(this.current.add(cost), (isAdded) => isAdded || this.addElsewhere(cost))
    if (!(added instanceof Promise)) return added
    const turn = added.then(
      () => undefined,
      () => undefined,
    )
    this.last = turn
    turn.then(() => {
      if (this.last === turn) this.last = undefined
    })
    return added
  }

  /** At the next source that has room for the piece. */
  private addElsewhere(cost: number): Awaitable<boolean> {
    if (this.next >= this.limiter.sources.length) return false
    return chained(this.limiter.opened(this.key, this.options, this.next), ({ hold, next }) => {
      if (!hold.allowed) return false
      return chained(hold.add(cost), (isAdded): Awaitable<boolean> => {
        this.parts.push(hold)
        this.next = next
        return isAdded || this.addElsewhere(cost)
      })
    })
  }

  /** What is missing of the true cost is spent where the work is now. */
  private close(cost?: number): Awaitable<Decision> {
    this.isClosed = true
    const others = this.parts.slice(0, -1)
    const before = others.reduce((total, { used }) => total + used, 0)
    const end = (i: number): Awaitable<Decision> => {
      const part = others[i]
      if (part !== undefined) return chained(part.close() as Awaitable<Decision>, () => end(i + 1))
      return this.current.close(cost === undefined ? undefined : Math.max(0, cost - before)) as Awaitable<Decision>
    }
    return end(0)
  }

  /** Of the sources that come later, what can be seen at once. */
  private affordable(price: number): number {
    const here = this.current.affordable(price)
    const { most = Number.POSITIVE_INFINITY } = this.options
    let sum = here
    for (const source of this.limiter.sources.slice(this.next)) {
      const seen = source.peek(this.limiter.keyAt(source, this.key), 1)
      if ('remaining' in seen) sum += Math.floor(seen.remaining / price)
    }
    return this.isClosed ? 0 : Math.min(sum, Math.floor((most - this.hold.used) / price))
  }

  private get current(): AnyHold {
    return this.parts[this.parts.length - 1] as AnyHold
  }
}

function isOf({ name, policies }: Policy, decision: Decision | undefined): boolean {
  return name === decision?.policy || (policies?.some((part) => part.name === decision?.policy) ?? false)
}

/** A source that cannot be reached: nobody knows whether it has room. */
function isOut({ allowed, source }: Decision): boolean {
  return !allowed && source === 'outage'
}

function itself(decision: Decision): Decision {
  return decision
}

function decisionOf({ decision, allowed }: Reservation<When>): Decision {
  return decision.allowed === allowed ? decision : { ...decision, allowed }
}
