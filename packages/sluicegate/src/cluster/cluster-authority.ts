import type { CallGuard } from '../shared/call-guard.js'
import type { Authority, Grant } from '../lease/authority.js'
import type { Policy } from '../policy/policy.js'
import { grantIn } from './grant-numbers.js'
import type { PrimaryLink } from './primary-link.js'

/** The primary as the one who hands out tokens of a policy, of `allOf` of one of its parts. */
export class ClusterAuthority implements Authority {
  private readonly guard: CallGuard
  private readonly link: PrimaryLink
  private readonly policy: Policy
  private readonly part: number

  constructor(guard: CallGuard, link: PrimaryLink, policy: Policy, part: number) {
    this.guard = guard
    this.link = link
    this.policy = policy
    this.part = part
  }

  async lease(key: string, want: number, horizonUs: number, least: number): Promise<Grant> {
    const { guard, link, part } = this
    const id = link.newId()
    const answer = await guard.guarded(key, () => link.ask(id, 'lease', key, want, horizonUs, least, part))
    return grantIn(answer, this.policy, horizonUs, least, id)
  }

  /** Whatever is asked after it is answered after it. */
  async giveBack(key: string, tokens: number, id: number): Promise<void> {
    this.link.tell('giveBack', key, id, tokens)
  }
}
