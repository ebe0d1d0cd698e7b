import { type Awaitable, chained } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { StoreError } from '../errors.js'
import { heldAs } from '../holds/held-as.js'
import type { OpenOptions } from '../holds/hold.js'
import type { AnyHold } from '../holds/metered.js'
import type { Key } from '../key.js'
import type { Policy } from '../policy/policy.js'
import type { InnerLimiter } from './layer.js'
import { WITHIN } from './shadow-limiter.js'
import { SoftWatch, type SoftWatchParts } from './soft-watch.js'
import { type Deed, WatchingLayer } from './watching-layer.js'

/** Soft limits, as a layer that looks at the answers of a limiter. */
export class SoftLimiter<Answer extends Decision> extends WatchingLayer<Answer> {
  private readonly watch: SoftWatch

  constructor(inner: InnerLimiter<Answer>, parts: SoftWatchParts) {
    super(inner)
    this.watch = new SoftWatch(parts)
    // The middleware hides the denials of a shadow limiter itself.
    const within = (inner as { readonly [WITHIN]?: InnerLimiter<Answer> })[WITHIN]
    if (within !== undefined) Object.defineProperty(this, WITHIN, { value: new SoftLimiter(within, parts) })
  }

  protected seen<Made extends Decision>(key: Key, made: Made, deed: Deed): Made {
    return this.lookedAt(key, made, (policy) => this.watch.seen(policy, key, made, deed !== 'look'))
  }

  protected opened(key: Key, hold: AnyHold, _options: OpenOptions | undefined): AnyHold {
    const reached = this.lookedAt(key, [], (policy) => this.watch.reached(policy, key, hold, true))
    const decision = reached.length === 0 ? hold : { ...hold, soft: reached }
    const close = (cost?: number): Decision =>
      chained(hold.close(cost) as Awaitable<Decision>, (made) => this.seen(key, made, 'take')) as Decision
    return heldAs(hold, decision, { close })
  }

  override close(): void {
    super.close()
    this.watch.close()
  }

  /** Where the limiter was closed meanwhile, or a function of plans fails now, its answer stands. */
  private lookedAt<Value>(key: Key, usual: Value, look: (policy: Policy) => Value): Value {
    let policy: Policy
    try {
      policy = this.policyOf(key)
    } catch {
      return usual
    }
    try {
      return look(policy)
    } catch (error) {
      if (error instanceof StoreError) return usual
      throw error
    }
  }
}
