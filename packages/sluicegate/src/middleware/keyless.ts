import { combined, type Decision } from '../decision/decision.js'
import type { RequestFacts } from '../keys/key-reader.js'
import type { Policy } from '../policy/policy.js'
import { warnOnce } from '../warn-once.js'
import type { Denial } from './denial.js'
import { type KeySource, readersIn } from './key-source.js'

const warn = warnOnce()

/** A request without a key, or without a policy, which its limit denies. Limits throw it while nothing has been taken yet, and it never leaves the middleware. */
export class KeylessRequest {
  /** `WWW-Authenticate` of the response; undefined where the key is no credential. */
  readonly challenge: string | undefined
  /** Undefined where the function `policy` has chosen none. */
  private readonly policy: Policy | undefined
  private readonly missing: string

  /** @param source of the key. */
  constructor(policy: Policy | undefined, source: KeySource<never>) {
    this.policy = policy
    if (policy === undefined) {
      this.missing = 'policy'
      return
    }
    const readers = readersIn(source)
    this.challenge = readers.find(({ challenge }) => challenge !== undefined)?.challenge
    this.missing = readers[0]?.name ?? 'the function'
  }

  get denial(): Denial {
    const { policy, missing } = this
    const decision = keylessDecision(policy ?? NO_POLICY)
    const violated = (policy?.policies ?? (policy === undefined ? [] : [policy])).map(({ name }) => name)
    return { kind: 'keyless', problem: 'about:blank', key: '', decision, decisions: [decision], violated, shadow: false, missing }
  }

  /** For users who did not say what such requests get. @param facts those of the Fetch standard have a cure for a missing address. */
  warnOfDefault(facts?: RequestFacts & { readonly addressCure?: string | undefined }): void {
    const { missing, policy } = this
    if (policy === undefined) {
      const mend = "return one for every request, or say onMissingKey: 'skip' to let the others pass"
      warn('SLUICEGATE_KEY_MISSING', `the function policy returned no policy for a request, which was denied: ${mend}`, 'policy')
      return
    }
    const cure = /\baddress\(/.test(missing) ? facts?.addressCure : undefined
    if (cure !== undefined) {
      warn('SLUICEGATE_ADDRESS_MISSING', `a request had no address to count it for, and was denied: ${cure}`)
      return
    }
    const mend = "say onMissingKey: 'skip', another key, or 'deny' if that is meant"
    warn('SLUICEGATE_KEY_MISSING', `${missing} found no key in a request, which the policy '${policy.name}' denied: ${mend}`, policy.name)
  }
}

const NO_POLICY = { name: '', limit: 0, policies: undefined }

/** Such a request never passes as it is. */
function keylessDecision({
  name,
  limit,
  policies,
}: {
  readonly name: string
  readonly limit: number
  readonly policies?: readonly Policy[] | undefined
}): Decision {
  if (policies !== undefined) return combined(policies.map(keylessDecision))
  return { allowed: false, limit, remaining: 0, retryAfterMs: Number.POSITIVE_INFINITY, resetAfterMs: 0, policy: name, source: 'memory' }
}
