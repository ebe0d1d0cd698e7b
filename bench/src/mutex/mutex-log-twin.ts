import type { Decision } from '../../../packages/sluicegate/dist/decision/decision.js'
import type { Policy } from '../../../packages/sluicegate/dist/policy/policy.js'
import type { Clock } from '../../../packages/sluicegate/dist/time/clock.js'
import { clockOf, foundMutexTable, MutexTable, type MutexTwinHandle, type MutexTwinOptions } from './mutex-table.js'

/**
 * An entry: the fingerprint, the slot of the oldest request and how many there are (two words), the sum of their costs, then a
 * ring of `limit` times in microseconds, and one of as many costs, a word each.
 */
const OLDEST_WORD = 2
const COUNT_WORD = 3
const USED = 2
const TIMES = 3

/** A fresh twin with room for `maxKeys`. */
export function createMutexLogTwin(policy: Policy, options: MutexTwinOptions = {}): MutexLogTwin {
  return new MutexLogTwin(...foundMutexTable(policy, doublesPerEntry(policy), options))
}

/** The same twin in a worker thread. */
export function attachMutexLogTwin(handle: MutexTwinHandle): MutexLogTwin {
  return new MutexLogTwin(handle, clockOf(handle))
}

function doublesPerEntry({ limit }: Policy): number {
  return TIMES + limit + Math.ceil(limit / 2)
}

/** The sliding log under a mutex. */
class MutexLogTwin extends MutexTable {
  private readonly limit: number
  private readonly windowUs: number
  /** Of the last step: the sum of the live costs, when the last of them expires, and when enough of them has for the request. */
  private used = 0
  private emptyAtUs = 0
  private passesAtUs = 0

  constructor(given: MutexTwinHandle, clock: Clock) {
    super(given, clock)
    this.limit = given.policy.limit
    this.windowUs = Math.round(given.policy.windowMs * 1000)
  }

  protected makeNew(at: number): void {
    this.words[2 * at + OLDEST_WORD] = 0
    this.words[2 * at + COUNT_WORD] = 0
    this.numbers[at + USED] = 0
  }

  protected isAsNew(at: number, nowUs: number): boolean {
    return this.newestUs(at) + this.windowUs <= nowUs
  }

  protected step(at: number, nowUs: number, cost: number): boolean {
    if (at < 0) {
      this.used = this.limit
      this.emptyAtUs = this.passesAtUs = nowUs + this.windowUs
      return false
    }
    this.dropExpired(at, nowUs)
    const used = this.numbers[at + USED] as number
    const passes = used + cost <= this.limit
    if (passes) this.append(at, Math.max(nowUs, this.newestUs(at)), cost)
    else this.passesAtUs = this.passesAt(at, used + cost - this.limit)
    this.used = this.numbers[at + USED] as number
    this.emptyAtUs = this.newestUs(at) + this.windowUs
    return passes
  }

  protected decision(allowed: boolean, nowUs: number, cost: number): Decision {
    const { limit, name } = this.policy
    const isImpossible = cost > limit
    return {
      allowed,
      limit,
      remaining: limit - this.used,
      retryAfterMs: allowed ? 0 : isImpossible ? Number.POSITIVE_INFINITY : Math.ceil((this.passesAtUs - nowUs) / 1000),
      resetAfterMs: Math.max(0, Math.ceil((this.emptyAtUs - nowUs) / 1000)),
      policy: name,
      source: 'memory',
    }
  }

  private dropExpired(at: number, nowUs: number): void {
    let oldest = this.words[2 * at + OLDEST_WORD] as number
    let count = this.words[2 * at + COUNT_WORD] as number
    let used = this.numbers[at + USED] as number
    while (count > 0 && this.timeUs(at, oldest) + this.windowUs <= nowUs) {
      used -= this.cost(at, oldest)
      oldest = oldest + 1 === this.limit ? 0 : oldest + 1
      count--
    }
    this.words[2 * at + OLDEST_WORD] = oldest
    this.words[2 * at + COUNT_WORD] = count
    this.numbers[at + USED] = used
  }

  private append(at: number, timeUs: number, cost: number): void {
    const count = this.words[2 * at + COUNT_WORD] as number
    const slot = this.slot(at, count)
    this.numbers[at + TIMES + slot] = timeUs
    this.words[2 * (at + TIMES + this.limit) + slot] = cost
    this.words[2 * at + COUNT_WORD] = count + 1
    this.numbers[at + USED] = (this.numbers[at + USED] as number) + cost
  }

  /** When `tokens` have expired, oldest first. */
  private passesAt(at: number, tokens: number): number {
    const count = this.words[2 * at + COUNT_WORD] as number
    let freed = 0
    for (let nth = 0; nth < count; nth++) {
      freed += this.cost(at, this.slot(at, nth))
      if (freed >= tokens) return this.timeUs(at, this.slot(at, nth)) + this.windowUs
    }
    return Number.POSITIVE_INFINITY
  }

  /** Before every reading where there is none. */
  private newestUs(at: number): number {
    const count = this.words[2 * at + COUNT_WORD] as number
    return count === 0 ? Number.NEGATIVE_INFINITY : this.timeUs(at, this.slot(at, count - 1))
  }

  /** Where the nth request from the oldest on is, or would be. */
  private slot(at: number, nth: number): number {
    const slot = (this.words[2 * at + OLDEST_WORD] as number) + nth
    return slot < this.limit ? slot : slot - this.limit
  }

  private timeUs(at: number, slot: number): number {
    return this.numbers[at + TIMES + slot] as number
  }

  private cost(at: number, slot: number): number {
    return this.words[2 * (at + TIMES + this.limit) + slot] as number
  }
}
