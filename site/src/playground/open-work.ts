import { createLimiter, type Hold, type Limiter } from 'sluicegate'
import { hasBurst, policyOf, type RatePolicy } from './decide.js'

/** Pieces of each work, a token each. */
export const PIECES = 12
/** What a work is expected to cost: less than it does, so that it grows beyond its hold. */
const EXPECTED = 8
const KEY = 'you'

/** How a key stands, in tokens: together its limit, or its burst. */
export interface WorkReading {
  readonly spent: number
  readonly held: number
  readonly free: number
  /** Works under way. */
  readonly open: number
  /** Works that ended because nothing was left for their next piece. */
  readonly cut: number
}

/** Works of one key under a policy, each with a hold, on a clock that the page moves. */
export class OpenWork {
  private nowMs = 0
  private readonly limiter: Limiter
  private readonly works = new Set<Hold>()
  private readonly most: number
  private cut = 0

  /** @throws {PolicyError} as {@link policyOf} */
  constructor(rate: RatePolicy) {
    this.limiter = createLimiter(policyOf(rate), { clock: { nowMs: () => this.nowMs }, maxKeys: 64 })
    this.most = hasBurst(rate) ? rate.burst : rate.limit
  }

  /** Opens one more. False: there is no room for what it is expected to cost. */
  open(): boolean {
    const work = this.limiter.open(KEY, { expect: Math.min(EXPECTED, this.most) })
    if (work.allowed) this.works.add(work)
    return work.allowed
  }

  /** Time passes, and each work spends one piece more. One that has spent all of them closes. */
  pass(ms: number): void {
    this.nowMs += ms
    for (const work of this.works) {
      const isCut = !work.add(1)
      if (isCut) this.cut++
      if (!isCut && work.used < PIECES) continue
      work.close()
      this.works.delete(work)
    }
  }

  reading(): WorkReading {
    let held = 0
    for (const work of this.works) held += work.held
    const free = this.limiter.peek(KEY).remaining
    return { spent: Math.max(0, this.most - free - held), held, free, open: this.works.size, cut: this.cut }
  }

  close(): void {
    this.limiter.close()
  }
}
