import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type { LeaseStep, RecordRules } from '../twins/lease-step.js'
import { LogStep } from '../twins/log-step.js'
import { RateStep } from '../twins/rate-step.js'
import { FixedStep, SlidingStep } from '../twins/window-steps.js'

/** @param numbers what `name` says of them; of others in a mutant. */
export function leaseStepOf({ name }: Pick<PolicyEncoding, 'name'>, numbers: readonly number[], rules: RecordRules): LeaseStep {
  switch (name) {
    case 'rate':
      return new RateStep(numbers, rules)
    case 'fixed-window':
      return new FixedStep(numbers)
    case 'sliding-window':
      return new SlidingStep(numbers, rules)
    case 'sliding-log':
      return new LogStep(numbers)
    default:
      throw new RangeError(`${name} is not leased`)
  }
}
