import type { Decision } from '../decision.js'
import type { BoundKey } from '../limiter.js'
import { Shown } from '../shown.js'

/** What a bound key asks of its limiter. */
interface HashedKeys<Answer extends Decision> {
  takeBound(key: string, low: number, high: number, cost: number): Answer
  peekHashed(key: string, low: number, high: number, cost: number): Decision
  toJSON(): object
}

/** A key of a limiter in memory whose fingerprint is kept. */
export class MemoryBoundKey<Answer extends Decision> extends Shown implements BoundKey<Answer> {
  readonly key: string
  private readonly limiter: HashedKeys<Answer>
  private readonly low: number
  private readonly high: number

  constructor(limiter: HashedKeys<Answer>, key: string, low: number, high: number) {
    super()
    this.key = key
    this.limiter = limiter
    this.low = low
    this.high = high
  }

  toJSON(): object {
    return this.limiter.toJSON()
  }

  take(cost = 1): Answer {
    return this.limiter.takeBound(this.key, this.low, this.high, cost)
  }

  peek(cost = 1): Decision {
    return this.limiter.peekHashed(this.key, this.low, this.high, cost)
  }
}
