import type { StoreForm } from '../redis/store-form.js'
import type { LeaseStep } from './lease-step.js'
import { RateStep } from './rate-step.js'
import { FixedStep, LogStep, SlidingStep } from './window-steps.js'

/** @param numbers what `form` says of them; of others in a mutant. */
export function leaseStepOf({ form }: Pick<StoreForm, 'form'>, numbers: readonly number[]): LeaseStep {
  switch (form) {
    case 'rate':
      return new RateStep(numbers)
    case 'fixed-window':
      return new FixedStep(numbers)
    case 'sliding-window':
      return new SlidingStep(numbers)
    case 'sliding-log':
      return new LogStep(numbers)
    default:
      throw new RangeError(`${form} is not leased`)
  }
}
