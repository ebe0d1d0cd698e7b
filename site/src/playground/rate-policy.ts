import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'

/** The algorithms that can be tried, by their names in configuration files. */
export const ALGORITHMS = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log'] as const
export type AlgorithmName = (typeof ALGORITHMS)[number]

/** The numbers of a policy as a form has them. */
export interface RatePolicy {
  readonly algorithm: AlgorithmName
  readonly limit: number
  /** As in `tokenBucket({ window })`: `10s`. */
  readonly window: string
  /** Of token bucket and GCRA alone. */
  readonly burst: number
}

export function hasBurst({ algorithm }: RatePolicy): boolean {
  return algorithm === 'token-bucket' || algorithm === 'gcra'
}

/** @throws {PolicyError} which says the option and what is wrong with it. */
export function policyOf(rate: RatePolicy): Policy {
  const { limit, burst } = rate
  const window = rate.window as '1s'
  switch (rate.algorithm) {
    case 'token-bucket':
      return tokenBucket({ limit, window, burst })
    case 'gcra':
      return gcra({ limit, window, burst })
    case 'fixed-window':
      return fixedWindow({ limit, window })
    case 'sliding-window':
      return slidingWindow({ limit, window })
    case 'sliding-log':
      return slidingLog({ limit, window })
  }
}
