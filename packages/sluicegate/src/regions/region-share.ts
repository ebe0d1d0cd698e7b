import { createLimiter } from '../create-limiter.js'
import { holdsPermits } from '../decision/permit.js'
import type { Grant } from '../lease/grant.js'
import type { Key, Limiter } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import type { Answer, Backend, CancelSignal, LeaseRequest, Operation } from '../shared/backend.js'
import type { LocalShare } from '../shared/outage/local-share.js'
import { shareOfPolicy } from '../shared/outage/share-of-policy.js'
import type { Clock } from '../time/clock.js'

/** The region's share of a policy, kept in the region's store: decides while the home cannot be reached. */
export class ShareBackend implements Backend {
  private readonly policy: Policy
  private readonly share: LocalShare
  private readonly connect: (policy: Policy) => Backend
  private readonly clock: Clock
  private inForce = 0
  private part: Policy
  private backend: Backend | undefined
  /** What this process spent of it: a store that loses its data learns it again. */
  private own: Limiter | undefined

  constructor(policy: Policy, share: LocalShare, connect: (policy: Policy) => Backend, clock: Clock) {
    this.policy = policy
    this.part = policy
    this.share = share
    this.connect = connect
    this.clock = clock
  }

  execute(operation: Operation, signal?: CancelSignal): Promise<Answer> {
    return this.current().execute(operation, signal)
  }

  lease(request: LeaseRequest, signal?: CancelSignal): Promise<Grant> {
    return this.current().lease(request, signal)
  }

  /** What is spent of a key in the region and has not refilled, of each policy. */
  async spentOf(key: Key): Promise<readonly number[]> {
    const { decision } = await this.execute({ verb: 'peek', key, cost: 1 })
    return decision === undefined ? [] : spentBy(decision, this.part)
  }

  /** This process admitted tokens; fewer than none came back. */
  note(key: Key, tokens: number): void {
    if (holdsPermits(this.policy)) return
    this.own ??= createLimiter(this.part, { clock: this.clock })
    if (tokens > 0) this.own.penalize(key, tokens)
    else if (tokens < 0) this.own.refund(key, -tokens)
  }

  /**
   * The store lost its data: what this process spent and has not refilled counts there again.
   *
   * @param counted tokens that the store has counted since.
   * @returns of each policy.
   */
  async restore(key: Key, counted: number): Promise<readonly number[]> {
    if (this.own === undefined) return []
    const tokens = spentBy(this.own.peek(key), this.part).map((spent) => Math.max(0, spent - counted))
    if (tokens.some((each) => each > 0)) await this.execute({ verb: 'charge', key, tokens })
    return tokens
  }

  close(): void {
    this.own?.close()
    this.own = undefined
  }

  /** What was spent of another share stays spent: the name is the same. */
  private current(): Backend {
    const share = this.share.held()
    if (this.backend === undefined || share !== this.inForce) {
      this.inForce = share
      this.part = shareOfPolicy(this.policy, share)
      this.backend = this.connect(this.part)
      this.own?.update(this.part)
    }
    return this.backend
  }
}

function spentBy(
  { remaining, parts }: Pick<Answer['decision'] & object, 'remaining' | 'parts'>,
  { burst, policies }: Policy,
): readonly number[] {
  if (parts === undefined || policies === undefined) return [burst - remaining]
  return parts.map((each, i) => (policies[i] as Policy).burst - each.remaining)
}

/** The share of a process that lost the region's store as well: its part of the region's. */
export function shareOfRegion(own: LocalShare, region: LocalShare): LocalShare {
  return {
    get nodes() {
      return own.nodes
    },
    get inForce() {
      return own.inForce * region.inForce
    },
    held: () => own.held() * region.held(),
    answered: () => own.answered(),
  }
}
