import { ignore } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { type AnyHold, checkSpent, type Hold } from './hold.js'
import { OpenedHold, type Work } from './opened-hold.js'

/** Work that no limiter counts: everything passes if it may begin, nothing if not. */
export function uncountedHold(decision: Decision): Hold {
  return new OpenedHold<boolean, 'now'>(decision, new UncountedWork(decision))
}

/** The same work, whose pieces all pass. */
export function passingHold(hold: AnyHold, decision: Decision): AnyHold {
  return new OpenedHold<boolean, 'now'>(decision, new PassingWork(hold, decision))
}

class UncountedWork implements Work<'now'> {
  readonly held = 0
  readonly over = 0
  readonly isOver: boolean = false
  used = 0
  private readonly decision: Decision
  private isOpen: boolean

  constructor(decision: Decision) {
    this.decision = decision
    this.isOpen = decision.allowed
  }

  add(cost: number): boolean {
    checkSpent(cost)
    if (this.isOpen) this.used += cost
    return this.isOpen
  }

  close(cost?: number): Decision {
    if (cost !== undefined) checkSpent(cost)
    this.isOpen = false
    return this.decision
  }

  affordable(): number {
    return this.isOpen ? Number.POSITIVE_INFINITY : 0
  }
}

class PassingWork extends UncountedWork {
  private readonly hold: AnyHold

  constructor(hold: AnyHold, decision: Decision) {
    super(decision)
    this.hold = hold
  }

  override add(cost: number): boolean {
    ignore(this.hold.add(cost))
    return super.add(cost)
  }

  // Over a store a promise, as the type of its limiter says.
  override close(cost?: number): Decision {
    super.close()
    return this.hold.close(cost) as Decision
  }
}
