import { PolicyError } from '../errors.js'
import { checkedName } from '../policy/policy-options.js'

/** What an option says that is the name of a policy here. @throws {PolicyError} `NAME_INVALID`, by the name of the option. */
export function checkedPolicyName(option: string, name: string): string {
  try {
    return checkedName(name, '')
  } catch {
    throw new PolicyError('NAME_INVALID', option, name, 'must be 1 to 120 printable ASCII characters: it is in the name of the policy')
  }
}
