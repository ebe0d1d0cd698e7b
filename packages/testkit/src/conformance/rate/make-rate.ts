import type { Policy, RateOptions } from 'sluicegate'

/** Makes a policy of a rate, which may have a burst of its own. */
export type MakeRate = (options: RateOptions) => Policy
