import { type Clock, clockHandle, type Ticker, tickerOf } from './clock.js'
import type { Core, CoreHost, OpenCore } from './core.js'
import type { Decision } from './decision.js'
import { contentions, denials, evictions } from './diagnostics.js'
import { type Duration, toMs } from './duration.js'
import { type Emission, emissionOf } from './emission.js'
import { PolicyError, StoreError } from './errors.js'
import { fingerprint, high, low } from './fingerprint.js'
import { type HotKey, SpaceSaving } from './hot-keys.js'
import type { BoundKey, Limiter, LimiterHandle, LimiterStats } from './limiter.js'
import { checkedPolicy, type Policy } from './policy.js'
import { publishedPolicy, publishPolicy } from './policy-block.js'

/** What a handle carries. Everything here is structured-clonable. */
export interface MemoryHandle extends LimiterHandle {
  readonly memory: WebAssembly.Memory
  readonly secret: readonly [number, number]
  readonly clock: ReturnType<typeof clockHandle>
}

export interface MemoryLimiterParts {
  readonly open: (host: CoreHost) => OpenCore
  readonly secret: readonly [number, number]
  readonly clock: Clock
  readonly hotKeys: number
}

const MAX_KEY_LENGTH = 1024
const MAX_INT32 = 2 ** 31 - 1
const MAX_BLOCK_MS = 100 * 366 * 86_400_000

/** The limiter in shared memory: hashes keys, reads the clock, and turns the core's debts into decisions. */
export class MemoryLimiter implements Limiter {
  private readonly parts: MemoryLimiterParts
  private readonly ticker: Ticker
  private readonly k0: number
  private readonly k1: number
  private opened: OpenCore
  private core: Core
  private inForce: Policy | undefined
  // The policy's numbers, flat for the hot path.
  private limit = 0
  private burst = 0
  private name = ''
  private unitsPerToken = 1
  private unitsPerMs = 1
  private capacity = 1
  private readonly demand: SpaceSaving | undefined
  private readonly refused: SpaceSaving | undefined

  constructor(parts: MemoryLimiterParts) {
    this.parts = parts
    this.ticker = tickerOf(parts.clock)
    ;[this.k0, this.k1] = parts.secret
    if (parts.hotKeys > 0) {
      this.demand = new SpaceSaving(parts.hotKeys)
      this.refused = new SpaceSaving(parts.hotKeys)
    }
    this.opened = parts.open({ policyChanged: () => this.adopt(publishedPolicy(this.opened)) })
    this.core = this.opened.core
  }

  /** Puts the first policy in force, in a memory that was just created. */
  found(policy: Policy): this {
    publishPolicy(this.opened, policy, this.nowUs())
    return this
  }

  /** Joins a memory that another thread founded. */
  join(): this {
    this.core.attach()
    return this
  }

  get policy(): Policy {
    this.core.look()
    return this.inForce as Policy
  }

  take(key: string, cost = 1): Decision {
    checkKey(key)
    fingerprint(key, this.k0, this.k1)
    return this.takeHashed(key, low, high, cost)
  }

  peek(key: string, cost = 1): Decision {
    checkKey(key)
    checkCost(cost)
    fingerprint(key, this.k0, this.k1)
    return this.look(key, low, high, this.nowUs(), cost)
  }

  key(key: string): BoundKey {
    checkKey(key)
    this.core.look()
    fingerprint(key, this.k0, this.k1)
    return new MemoryBoundKey(this, key, low, high)
  }

  refund(key: string, tokens: number): Decision {
    checkKey(key)
    checkCost(tokens, 'tokens')
    fingerprint(key, this.k0, this.k1)
    const nowUs = this.nowUs()
    this.answered(this.core.refund(low, high, nowUs, tokens), key)
    return this.look(key, low, high, nowUs, 1)
  }

  penalize(key: string, tokens: number): Decision {
    checkKey(key)
    checkCost(tokens, 'tokens')
    fingerprint(key, this.k0, this.k1)
    const nowUs = this.nowUs()
    this.answered(this.core.penalize(low, high, nowUs, tokens), key)
    return this.look(key, low, high, nowUs, 1)
  }

  block(key: string, duration: Duration): Decision {
    checkKey(key)
    const ms = toMs(duration, 'duration')
    if (ms > MAX_BLOCK_MS) throw new PolicyError('DURATION_INVALID', 'duration', duration, 'must be at most 100 years')
    fingerprint(key, this.k0, this.k1)
    const nowUs = this.nowUs()
    this.answered(this.core.block(low, high, nowUs, wholeUs(ms)), key)
    return this.look(key, low, high, nowUs, 1)
  }

  reset(key: string): Decision {
    checkKey(key)
    fingerprint(key, this.k0, this.k1)
    const nowUs = this.nowUs()
    this.answered(this.core.reset(low, high, nowUs), key)
    this.answered(this.core.block(low, high, nowUs, 0), key)
    return this.look(key, low, high, nowUs, 1)
  }

  update(policy: Policy): void {
    const next = checkedPolicy(policy)
    const { algorithm } = this.policy
    if (next.algorithm !== algorithm) {
      throw new PolicyError(
        'ALGORITHM_CHANGE',
        'policy',
        next.algorithm,
        `must stay ${algorithm}: make a new limiter to change the algorithm`,
      )
    }
    publishPolicy(this.opened, next, this.nowUs())
  }

  handle(): LimiterHandle {
    this.core.look()
    const handle: MemoryHandle = { sluicegate: 1, memory: this.opened.memory, secret: this.parts.secret, clock: clockHandle(this.parts.clock) }
    return handle
  }

  stats(): LimiterStats {
    this.core.look()
    const { memory, constant } = this.opened
    const counters = new BigInt64Array(memory.buffer)
    const read = (name: 'KEYS' | 'EVICTIONS' | 'REFUSALS' | 'CAS_RETRIES' | 'CONTENTIONS'): number =>
      Number(Atomics.load(counters, constant(name) / 8))
    return {
      keys: read('KEYS'),
      evictions: read('EVICTIONS'),
      refusals: read('REFUSALS'),
      casRetries: read('CAS_RETRIES'),
      contentions: read('CONTENTIONS'),
      memoryBytes: memory.buffer.byteLength,
    }
  }

  hotKeys(n = 10): { readonly demand: readonly HotKey[]; readonly denials: readonly HotKey[] } {
    this.core.look()
    return { demand: this.demand?.top(n) ?? [], denials: this.refused?.top(n) ?? [] }
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
    const tokens = (cost | 0) === cost && cost > 0 ? cost : checkCost(cost)
    const nowUs = this.nowUs()
    const answer = this.core.take(low, high, nowUs, tokens)
    const decision = answer >= 0 ? this.decision(true, answer, 0) : this.notAllowed(key, low, high, nowUs, tokens, answer)
    if (this.demand !== undefined) this.count(key, decision.allowed)
    return decision
  }

  /** {@link peek} for a key whose fingerprint is known. */
  look(key: string, low: number, high: number, nowUs: number, cost: number): Decision {
    const debt = this.answered(this.core.peek(low, high, nowUs), key)
    const blockMs = Math.ceil(this.answered(this.core.blockLeft(low, high, nowUs), key) / 1000)
    const passes = blockMs === 0 && debt + cost * this.unitsPerToken <= this.capacity
    const decision = this.decision(passes, debt, passes ? 0 : Math.max(blockMs, this.retryAfterMs(debt, cost)))
    // A blocked key is not as good as new, however full.
    return blockMs > decision.resetAfterMs ? { ...decision, resetAfterMs: blockMs } : decision
  }

  /** Microseconds since the Unix epoch, for the core. */
  nowUs(): number {
    const { us } = this.ticker
    // NaN, no reading that still holds, differs from itself.
    return us === us ? us : this.ticker.read()
  }

  private decision(allowed: boolean, debt: number, retryAfterMs: number): Decision {
    const left = ((this.capacity - debt) / this.unitsPerToken) | 0
    return {
      allowed,
      limit: this.limit,
      remaining: left > 0 ? left : 0,
      retryAfterMs,
      resetAfterMs: Math.ceil(debt / this.unitsPerMs),
      policy: this.name,
      source: 'memory',
    }
  }

  private notAllowed(key: string, low: number, high: number, nowUs: number, cost: number, answer: number): Decision {
    const decision = answer < 0 ? this.denied(-1 - answer, cost) : this.unanswered(key, low, high, nowUs, cost)
    if (!decision.allowed && denials.hasSubscribers) denials.publish({ policy: this.name, key, cost, decision })
    return decision
  }

  private denied(debt: number, cost: number): Decision {
    return this.decision(false, debt, this.retryAfterMs(debt, cost))
  }

  /** A take that the core did not answer with a debt. */
  private unanswered(key: string, low: number, high: number, nowUs: number, cost: number): Decision {
    const { core } = this
    const { constant } = this.opened
    const why = core.whyUnanswered()
    const detail = core.detailOfUnanswered()
    if (why === constant('EVICTED')) {
      this.publishEviction(key)
      return detail >= 0 ? this.decision(true, detail, 0) : this.denied(-1 - detail, cost)
    }
    if (why === constant('BLOCKED')) return this.look(key, low, high, nowUs, cost)
    if (why === constant('LATE')) {
      // This thread's clock was read before another thread forgot a key. A new reading nearly always mends that.
      const laterUs = this.ticker.read()
      if (!(laterUs > nowUs)) return this.denied(detail, cost)
      const answer = core.take(low, high, laterUs, cost)
      if (answer >= 0) return this.decision(true, answer, 0)
      return answer < 0 ? this.denied(-1 - answer, cost) : this.unanswered(key, low, high, laterUs, cost)
    }
    if (why === constant('REFUSED')) {
      const waitMs = Math.ceil(detail / 1000)
      return { ...this.decision(false, this.capacity, cost > this.burst ? Number.POSITIVE_INFINITY : waitMs), resetAfterMs: waitMs }
    }
    throw this.contended(key)
  }

  private retryAfterMs(debt: number, cost: number): number {
    if (cost > this.burst) return Number.POSITIVE_INFINITY
    return Math.max(0, Math.ceil((debt + cost * this.unitsPerToken - this.capacity) / this.unitsPerMs))
  }

  /** Lets a number through, throws when there is none. */
  private answered(answer: number, key: string): number {
    if (answer >= 0) return answer
    const why = this.core.whyUnanswered()
    if (why === this.opened.constant('EVICTED')) {
      this.publishEviction(key)
      return this.core.detailOfUnanswered()
    }
    if (why === this.opened.constant('REFUSED')) {
      throw new StoreError('TABLE_FULL', 'no room for this key: every key near it is being denied. Raise maxKeys')
    }
    throw this.contended(key)
  }

  private contended(key: string): StoreError {
    if (contentions.hasSubscribers) contentions.publish({ policy: this.name, key })
    return new StoreError('CONTENTION', 'other threads kept changing this key; the call was given up after a bounded wait')
  }

  private publishEviction(key: string): void {
    const tokens = this.core.forgotten() / this.unitsPerToken
    if (evictions.hasSubscribers) evictions.publish({ policy: this.name, key, tokens })
  }

  private count(key: string, allowed: boolean): void {
    this.demand?.add(key)
    if (!allowed) this.refused?.add(key)
  }

  private adopt(policy: Policy): void {
    const { unitsPerUs, unitsPerToken, capacity }: Emission = emissionOf(policy)
    this.inForce = policy
    this.limit = policy.limit
    this.burst = policy.burst
    this.name = policy.name
    this.unitsPerToken = unitsPerToken
    this.unitsPerMs = unitsPerUs * 1000
    this.capacity = capacity
  }
}

class MemoryBoundKey implements BoundKey {
  readonly key: string
  private readonly limiter: MemoryLimiter
  private readonly low: number
  private readonly high: number

  constructor(limiter: MemoryLimiter, key: string, low: number, high: number) {
    this.key = key
    this.limiter = limiter
    this.low = low
    this.high = high
  }

  take(cost = 1): Decision {
    return this.limiter.takeHashed(this.key, this.low, this.high, cost)
  }

  peek(cost = 1): Decision {
    checkCost(cost)
    return this.limiter.look(this.key, this.low, this.high, this.limiter.nowUs(), cost)
  }
}

/** Every call throws: what a closed limiter's core is. */
const closedCore = new Proxy({} as Core, {
  get: () => () => {
    throw new StoreError('CLOSED', 'this limiter was closed')
  },
})

function checkKey(key: unknown): void {
  if (typeof key !== 'string' || key.length === 0 || key.length > MAX_KEY_LENGTH) {
    throw new PolicyError('KEY_INVALID', 'key', key, `must be a string of 1 to ${MAX_KEY_LENGTH} characters`)
  }
}

/** The cost, at most what fits 32 bits: above 1,000,000,000 none can pass anyway. */
function checkCost(cost: unknown, option = 'cost'): number {
  if (typeof cost === 'number' && Number.isInteger(cost) && cost >= 1) return Math.min(cost, MAX_INT32)
  throw new PolicyError('COST_INVALID', option, cost, 'must be an integer >= 1')
}

/** The nearest whole microsecond, as readings are; only 0 itself is none. */
function wholeUs(ms: number): number {
  return ms > 0 ? Math.max(1, Math.round(ms * 1000)) : 0
}
