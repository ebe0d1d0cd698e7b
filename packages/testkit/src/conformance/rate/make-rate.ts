import type { Policy, RateOptions } from 'sluicegate'

/** Makes a policy of a rate, which may have its own burst. */
export type MakeRate = (options: RateOptions) => Policy
