import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import type { Answer, Backend, CancelSignal, LeaseRequest, Operation } from '../shared/backend.js'
import type { LocalShare } from '../shared/outage/local-share.js'
import { shareOfPolicy } from '../shared/outage/share-of-policy.js'

/** The region's share of a policy, kept in the region's store: decides while the home cannot be reached. */
export class ShareBackend implements Backend {
  private readonly policy: Policy
  private readonly share: LocalShare
  private readonly connect: (policy: Policy) => Backend
  private inForce = 0
  private backend: Backend | undefined

  constructor(policy: Policy, share: LocalShare, connect: (policy: Policy) => Backend) {
    this.policy = policy
    this.share = share
    this.connect = connect
  }

  execute(operation: Operation, signal?: CancelSignal): Promise<Answer> {
    return this.current().execute(operation, signal)
  }

  lease(request: LeaseRequest, signal?: CancelSignal): Promise<Grant> {
    return this.current().lease(request, signal)
  }

  /** What was spent of another share stays spent: the name is the same. */
  private current(): Backend {
    const share = this.share.held()
    if (this.backend === undefined || share !== this.inForce) {
      this.inForce = share
      this.backend = this.connect(shareOfPolicy(this.policy, share))
    }
    return this.backend
  }
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
