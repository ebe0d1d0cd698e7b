import { type Awaitable, isPromise } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import type { RequestFacts } from '../keys/request-facts.js'
import { TierTable } from '../layers/tier-table.js'
import type { Policy } from '../policy/policy.js'
import type { PolicyChoice } from './gatekeeper-options.js'
import type { LimitRule, Weighed, Weigher } from './limit-rule.js'

/** One limit whose policy is chosen for each request: a rule for each policy, made once for all that say the same. */
export class ChosenRules<Request> implements Weigher<Request> {
  private readonly choose: PolicyChoice<Request>
  private readonly rules: TierTable<LimitRule<Request>>

  constructor(choose: PolicyChoice<Request>, make: (policy: Policy) => LimitRule<Request>) {
    this.choose = choose
    this.rules = new TierTable({ option: 'policy', make })
  }

  weigh<Result>(facts: RequestFacts, request: Request, next: Weighed<Request, Result>, free: Result): Awaitable<Result> {
    const policy = this.choose(request, facts)
    if (isPromise(policy)) return policy.then((found) => this.ruleOf(found).weigh(facts, request, next, free))
    return this.ruleOf(policy).weigh(facts, request, next, free)
  }

  /** @throws {PolicyError} `POLICY_INVALID` */
  private ruleOf(policy: Policy): LimitRule<Request> {
    if (policy !== undefined && policy !== null) return this.rules.of(policy, false)
    throw new PolicyError(
      'POLICY_INVALID',
      'policy',
      policy,
      'the function gave none: return one for every request, or let skip pass those without',
    )
  }
}
