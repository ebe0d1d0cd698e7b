import { type Awaitable, chained } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { heldAs } from '../holds/held-as.js'
import type { OpenOptions } from '../holds/hold.js'
import type { AnyHold } from '../holds/metered.js'
import { type Key, keysOf } from '../key.js'
import type { InnerLimiter } from '../layers/layer.js'
import { type Deed, WatchingLayer } from '../layers/watching-layer.js'
import { type Policy, policiesOf } from '../policy/policy.js'
import { hasDefaultName } from '../policy/policy-options.js'
import type { LedgerLevel } from './ledger-record.js'
import type { LedgerWriter, SummedWork } from './ledger-writer.js'

/** A limiter whose charges are written to a ledger. */
export class RecordedLimiter<Answer extends Decision> extends WatchingLayer<Answer> {
  private readonly ledger: LedgerWriter

  constructor(inner: InnerLimiter<Answer>, ledger: LedgerWriter) {
    super(inner)
    this.ledger = ledger
  }

  protected seen<Made extends Decision>(key: Key, made: Made, deed: Deed, tokens: number): Made {
    const isCharged = deed !== 'take' || (made.allowed && made.wouldDeny !== true)
    if (deed !== 'look' && isCharged && (tokens !== 0 || deed === 'reset')) {
      this.ledger.write({ event: deed, levels: this.levelsOf(key), tokens: deed === 'refund' ? -tokens : tokens })
    }
    return made
  }

  protected opened(key: Key, hold: AnyHold, _options: OpenOptions | undefined): AnyHold {
    if (!hold.allowed) return hold
    const work = new RecordedWork(hold, this.levelsOf(key), this.ledger)
    return heldAs(hold, hold, {
      add: (cost) =>
        chained(hold.add(cost), (isAdded) => {
          work.renewed()
          return isAdded
        }),
      close: (cost) =>
        chained(hold.close(cost) as Awaitable<Decision>, (decision) => {
          work.closed()
          return decision
        }) as Decision,
    })
  }

  /** It is charged already, should a function of policies fail now. */
  private policySeen(key: Key): Policy {
    try {
      return this.policyOf(key)
    } catch {
      return this.policy
    }
  }

  private levelsOf(key: Key): readonly LedgerLevel[] {
    const policy = this.policySeen(key)
    const keys = keysOf(policy, key)
    const whole = policy.policies === undefined || hasDefaultName(policy) ? {} : { whole: policy.name }
    return policiesOf(policy).map(({ name }, i) => ({ ...whole, policy: name, key: keys[i] as string }))
  }
}

/** Open work: what it spends is summed until it is asked for. */
class RecordedWork implements SummedWork {
  private readonly hold: AnyHold
  private readonly id: number
  private readonly levels: readonly LedgerLevel[]
  private readonly ledger: LedgerWriter
  /** What the records have of it. */
  private used = 0
  private over = 0
  /** What it began with. */
  private readonly expected: number
  private hasLapsed = false
  private isClosed = false
  private isFollowed = true

  constructor(hold: AnyHold, levels: readonly LedgerLevel[], ledger: LedgerWriter) {
    this.hold = hold
    this.levels = levels
    this.ledger = ledger
    this.id = ledger.nextHold()
    this.expected = hold.held
    ledger.write({ event: 'open', hold: this.id, levels, tokens: this.expected })
    ledger.follow(this)
  }

  sum(): boolean {
    if (this.hold.used > this.used) {
      // Kept until there is room: a sum is not lost, only late.
      if (!this.ledger.hasRoom) return true
      this.write('add')
    }
    if (this.hold.held > 0) return true
    // All of it is spent, or its ttl is over. It is asked again after its next piece.
    if (this.used < this.expected && !this.hasLapsed) this.write('lapse')
    this.hasLapsed = true
    this.isFollowed = false
    return false
  }

  renewed(): void {
    if (this.isFollowed || this.isClosed) return
    this.isFollowed = true
    this.ledger.follow(this)
  }

  closed(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.ledger.unfollow(this)
    this.write('close')
  }

  private write(event: 'add' | 'close' | 'lapse'): void {
    const { used, over } = this.hold
    const beyond = over - this.over
    const tokens = used - this.used
    this.used = used
    this.over = over
    this.ledger.write({ event, hold: this.id, levels: this.levels, tokens, ...(beyond > 0 && { over: beyond }) })
  }
}
