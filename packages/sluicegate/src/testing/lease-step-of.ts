import type { StoreForm } from '../redis/store-form.js'
import type { LeaseStep, RecordRules } from './lease-step.js'
import { LogStep } from './log-step.js'
import { RateStep } from './rate-step.js'
import { FixedStep, SlidingStep } from './window-steps.js'

/** @param numbers what `form` says of them; of others in a mutant. */
export function leaseStepOf({ form }: Pick<StoreForm, 'form'>, numbers: readonly number[], rules: RecordRules): LeaseStep {
  switch (form) {
    case 'rate':
      return new RateStep(numbers, rules)
    case 'fixed-window':
      return new FixedStep(numbers)
    case 'sliding-window':
      return new SlidingStep(numbers, rules)
    case 'sliding-log':
      return new LogStep(numbers)
    default:
      throw new RangeError(`${form} is not leased`)
  }
}
