import type { Authority, Grant } from '../lease/authority.js'
import type { Policy } from '../policy.js'
import type { CallGuard } from '../redis/call-guard.js'
import { grantIn } from './grant-numbers.js'
import type { PrimaryLink } from './primary-link.js'

/** The primary as the one who hands out tokens of a policy. */
export class ClusterAuthority implements Authority {
  private readonly guard: CallGuard
  private readonly link: PrimaryLink
  private readonly policy: Policy

  constructor(guard: CallGuard, link: PrimaryLink, policy: Policy) {
    this.guard = guard
    this.link = link
    this.policy = policy
  }

  async lease(key: string, want: number, horizonUs: number, least: number): Promise<Grant> {
    const answer = await this.guard.guarded(key, () => this.link.ask(this.link.newId(), 'lease', key, want, horizonUs, least))
    const grant = grantIn(answer, this.policy, horizonUs, least)
    this.guard.counts.charged += grant.ready + grant.later
    return grant
  }
}
