import { blockUs, checkedCost, checkedTokens, checkKey } from './arguments.js'
import { type Clock, clockHandle, type Ticker, tickerOf } from './clock.js'
import { type Core, type CoreHost, closedCore, type OpenCore } from './core.js'
import type { Decision } from './decision.js'
import { contentions, denials, evictions } from './diagnostics.js'
import type { Duration } from './duration.js'
import { PolicyError, StoreError } from './errors.js'
import { fingerprint, high, low } from './fingerprint.js'
import { type HotKeys, SpaceSaving } from './hot-keys.js'
import type { BoundKey, Limiter, LimiterHandle, LimiterStats } from './limiter.js'
import { MemoryBoundKey } from './memory-bound-key.js'
import { checkedPolicy } from './checked-policy.js'
import type { Policy } from './policy.js'
import { publishedPolicy, publishPolicy } from './policy-block.js'
import { Terms } from './terms.js'

/** What a handle carries. Everything here is structured-clonable. */
export interface MemoryHandle extends LimiterHandle {
  readonly memory: WebAssembly.Memory
  readonly secret: readonly [number, number]
  readonly clock: ReturnType<typeof clockHandle>
}

/** What a limiter is made of; `open` gives it this thread's core. */
export interface MemoryLimiterParts {
  readonly open: (host: CoreHost) => OpenCore
  readonly secret: readonly [number, number]
  readonly clock: Clock
  readonly hotKeys: number
}

/** The limiter in shared memory: hashes keys, reads the clock, and turns the core's debts into decisions. */
export class MemoryLimiter implements Limiter {
  private readonly parts: MemoryLimiterParts
  private readonly ticker: Ticker
  private readonly k0: number
  private readonly k1: number
  private opened: OpenCore
  private core: Core
  /** Set by the core's first callback, before the constructor ends. */
  private terms!: Terms
  private readonly demand: SpaceSaving | undefined
  private readonly denials: SpaceSaving | undefined

  /** Founds the memory with `policy`, or joins one that another thread founded. */
  constructor(parts: MemoryLimiterParts, policy?: Policy) {
    this.parts = parts
    this.ticker = tickerOf(parts.clock)
    ;[this.k0, this.k1] = parts.secret
    if (parts.hotKeys > 0) {
      this.demand = new SpaceSaving(parts.hotKeys)
      this.denials = new SpaceSaving(parts.hotKeys)
    }
    this.opened = parts.open({
      policyChanged: () => {
        const policy = publishedPolicy(this.opened)
        // Else the core calls again, for a later one.
        if (policy !== undefined) this.terms = new Terms(policy)
      },
    })
    this.core = this.opened.core
    if (policy === undefined) this.core.attach()
    else publishPolicy(this.opened, policy, this.nowUs())
  }

  get policy(): Policy {
    this.core.look()
    return this.terms.policy
  }

  take(key: string, cost = 1): Decision {
    checkKey(key)
    fingerprint(key, this.k0, this.k1)
    return this.takeHashed(key, low, high, cost)
  }

  peek(key: string, cost = 1): Decision {
    checkKey(key)
    fingerprint(key, this.k0, this.k1)
    return this.peekHashed(key, low, high, cost)
  }

  key(key: string): BoundKey {
    checkKey(key)
    this.core.look()
    fingerprint(key, this.k0, this.k1)
    return new MemoryBoundKey(this, key, low, high)
  }

  refund(key: string, tokens: number): Decision {
    const { refund } = this.core
    return this.change(key, (nowUs) => refund(low, high, nowUs, checkedTokens(tokens)))
  }

  penalize(key: string, tokens: number): Decision {
    const { penalize } = this.core
    return this.change(key, (nowUs) => penalize(low, high, nowUs, checkedTokens(tokens)))
  }

  block(key: string, duration: Duration): Decision {
    const us = blockUs(duration)
    const { block } = this.core
    return this.change(key, (nowUs) => block(low, high, nowUs, us))
  }

  reset(key: string): Decision {
    const { block, reset } = this.core
    this.change(key, (nowUs) => block(low, high, nowUs, 0))
    return this.change(key, (nowUs) => reset(low, high, nowUs))
  }

  update(policy: Policy): void {
    const next = checkedPolicy(policy)
    const { algorithm } = this.policy
    if (next.algorithm !== algorithm) {
      const mend = `must stay ${algorithm}: make a new limiter to change the algorithm`
      throw new PolicyError('ALGORITHM_CHANGE', 'policy', next.algorithm, mend)
    }
    // Read last, and anew: what other threads take under the old policy after this reading counts as taken before it.
    this.core.prepare()
    publishPolicy(this.opened, next, this.ticker.read())
  }

  wait(): never {
    throw new Error('not yet')
  }

  reserve(): never {
    throw new Error('not yet')
  }

  snapshot(): never {
    throw new Error('not yet')
  }

  handle(): LimiterHandle {
    this.core.look()
    const { secret, clock } = this.parts
    const handle: MemoryHandle = { sluicegate: 1, memory: this.opened.memory, secret, clock: clockHandle(clock) }
    return handle
  }

  stats(): LimiterStats {
    this.core.look()
    return this.opened.stats()
  }

  hotKeys(n = 10): HotKeys {
    this.core.look()
    return { demand: this.demand?.top(n) ?? [], denials: this.denials?.top(n) ?? [] }
  }

  close(): void {
    this.core = closedCore
    this.opened = { ...this.opened, core: closedCore, memory: new WebAssembly.Memory({ initial: 0, maximum: 0, shared: true }) }
  }

  [Symbol.dispose](): void {
    this.close()
  }

  /** {@link take} for a key whose fingerprint is known. */
  takeHashed(key: string, low: number, high: number, cost: number): Decision {
    const tokens = typeof cost === 'number' && (cost | 0) === cost && cost > 0 ? cost : checkedCost(cost)
    const nowUs = this.nowUs()
    const answer = this.core.take(low, high, nowUs, tokens)
    const decision = answer >= 0 ? this.terms.allowed(answer) : this.notAllowed(key, low, high, nowUs, tokens, answer)
    if (this.demand !== undefined) this.count(key, decision.allowed)
    return decision
  }

  /** {@link peek} for a key whose fingerprint is known. */
  peekHashed(key: string, low: number, high: number, cost: number): Decision {
    return this.foreseen(key, low, high, this.nowUs(), checkedCost(cost))
  }

  private change(key: string, verb: (nowUs: number) => number): Decision {
    checkKey(key)
    const nowUs = this.nowUs()
    fingerprint(key, this.k0, this.k1)
    // Kept: a subscriber who hears of an eviction may ask about another key.
    const [ownLow, ownHigh] = [low, high]
    this.answered(verb(nowUs), key)
    return this.foreseen(key, ownLow, ownHigh, nowUs, 1)
  }

  private foreseen(key: string, low: number, high: number, nowUs: number, cost: number): Decision {
    const debt = this.answered(this.core.peek(low, high, nowUs), key)
    const blockMs = Math.ceil(this.answered(this.core.blockLeft(low, high, nowUs), key) / 1000)
    return this.terms.foreseen(debt, cost, blockMs)
  }

  /** Microseconds since the Unix epoch, for the core. */
  private nowUs(): number {
    const { us } = this.ticker
    return Number.isNaN(us) ? this.ticker.read() : us
  }

  private notAllowed(key: string, low: number, high: number, nowUs: number, cost: number, answer: number): Decision {
    const decision = answer < 0 ? this.terms.denied(-1 - answer, cost) : this.unanswered(key, low, high, nowUs, cost)
    if (!decision.allowed && denials.hasSubscribers) denials.publish({ policy: decision.policy, key, cost, decision })
    return decision
  }

  /** A take that the core did not answer with a debt. */
  private unanswered(key: string, low: number, high: number, nowUs: number, cost: number, isSecond = false): Decision {
    const detail = this.core.detailOfUnanswered()
    switch (this.opened.reason()) {
      case 'EVICTED':
        this.publishEviction(key)
        return detail >= 0 ? this.terms.allowed(detail) : this.terms.denied(-1 - detail, cost)
      case 'BLOCKED':
        return this.terms.foreseen(this.answered(this.core.peek(low, high, nowUs), key), cost, Math.ceil(detail / 1000))
      case 'LATE': {
        // This thread's clock was read before another thread forgot a key. A new reading nearly always mends that; after a
        // step back none would for long.
        const laterUs = isSecond ? nowUs : this.ticker.read()
        if (laterUs <= nowUs) return this.terms.denied(detail, cost)
        const answer = this.core.take(low, high, laterUs, cost)
        if (answer >= 0) return this.terms.allowed(answer)
        return answer < 0 ? this.terms.denied(-1 - answer, cost) : this.unanswered(key, low, high, laterUs, cost, true)
      }
      case 'REFUSED':
        return this.terms.refused(cost, Math.ceil(detail / 1000))
      case 'CONTENDED':
        throw this.contended(key)
    }
  }

  /** Lets a number through, throws when there is none. */
  private answered(answer: number, key: string): number {
    if (answer >= 0) return answer
    const reason = this.opened.reason()
    if (reason === 'REFUSED') {
      throw new StoreError('TABLE_FULL', 'no room for this key: nothing near it may be forgotten. Raise maxKeys')
    }
    if (reason !== 'EVICTED') throw this.contended(key)
    const detail = this.core.detailOfUnanswered()
    this.publishEviction(key)
    return detail
  }

  private contended(key: string): StoreError {
    if (contentions.hasSubscribers) contentions.publish({ policy: this.terms.policy.name, key })
    return new StoreError('CONTENTION', 'other threads kept changing this key; the call was given up after a bounded wait')
  }

  private publishEviction(key: string): void {
    if (!evictions.hasSubscribers) return
    evictions.publish({ policy: this.terms.policy.name, key, tokens: this.core.forgotten() / this.terms.unitsPerToken })
  }

  private count(key: string, allowed: boolean): void {
    this.demand?.add(key)
    if (!allowed) this.denials?.add(key)
  }
}
