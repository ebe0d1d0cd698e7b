import type { Decision } from '../../../packages/sluicegate/dist/decision/decision.js'
import type { Policy } from '../../../packages/sluicegate/dist/policy/policy.js'
import { emissionOf } from '../../../packages/sluicegate/dist/policy/policy-numbers.js'
import type { Clock } from '../../../packages/sluicegate/dist/time/clock.js'
import { clockOf, foundMutexTable, MutexTable, type MutexTwinHandle, type MutexTwinOptions } from './mutex-table.js'

/** An entry: the fingerprint, tokens in units, and the time they were counted, in microseconds. */
const TOKENS = 1
const COUNTED_US = 2
const DOUBLES_PER_ENTRY = 3

/** A fresh twin with room for `maxKeys`. */
export function createMutexTwin(policy: Policy, options: MutexTwinOptions = {}): MutexTwin {
  return new MutexTwin(...foundMutexTable(policy, DOUBLES_PER_ENTRY, options))
}

/** The same twin in a worker thread. */
export function attachMutexTwin(handle: MutexTwinHandle): MutexTwin {
  return new MutexTwin(handle, clockOf(handle))
}

/** The token bucket under a mutex. */
class MutexTwin extends MutexTable {
  private readonly unitsPerUs: number
  private readonly unitsPerToken: number
  private readonly capacity: number
  /** Of the last step, in units. */
  private left = 0

  constructor(given: MutexTwinHandle, clock: Clock) {
    super(given, clock)
    const { unitsPerUs, unitsPerToken, capacity } = emissionOf(given.policy)
    this.unitsPerUs = unitsPerUs
    this.unitsPerToken = unitsPerToken
    this.capacity = capacity
  }

  protected makeNew(at: number, nowUs: number): void {
    this.numbers[at + TOKENS] = this.capacity
    this.numbers[at + COUNTED_US] = nowUs
  }

  protected isAsNew(at: number, nowUs: number): boolean {
    return this.tokens(at, nowUs) >= this.capacity
  }

  protected step(at: number, nowUs: number, cost: number): boolean {
    const tokens = at < 0 ? 0 : this.tokens(at, nowUs)
    const left = tokens - cost * this.unitsPerToken
    const passes = at >= 0 && left >= 0
    if (passes) {
      this.numbers[at + TOKENS] = left
      this.numbers[at + COUNTED_US] = nowUs
    }
    this.left = passes ? left : tokens
    return passes
  }

  protected decision(allowed: boolean, _nowUs: number, cost: number): Decision {
    const { limit, name } = this.policy
    const short = cost * this.unitsPerToken - this.left
    return {
      allowed,
      limit,
      remaining: Math.floor(this.left / this.unitsPerToken),
      retryAfterMs: allowed ? 0 : Math.ceil(short / (this.unitsPerUs * 1000)),
      resetAfterMs: Math.ceil((this.capacity - this.left) / (this.unitsPerUs * 1000)),
      policy: name,
      source: 'memory',
    }
  }

  private tokens(at: number, nowUs: number): number {
    const elapsedUs = nowUs - (this.numbers[at + COUNTED_US] as number)
    return Math.min(this.capacity, (this.numbers[at + TOKENS] as number) + elapsedUs * this.unitsPerUs)
  }
}
