import { AllOfOracle } from './all-of-oracle.js'
import { ConcurrencyOracle } from './concurrency-oracle.js'
import { FixedWindowOracle } from './fixed-window-oracle.js'
import type { Oracle } from './oracle.js'
import type { PolicySpec } from './policy-spec.js'
import { RateOracle } from './rate-oracle.js'
import { SlidingLogOracle } from './sliding-log-oracle.js'
import { SlidingWindowOracle } from './sliding-window-oracle.js'

/** A fresh oracle of a policy. */
export function oracleFor(spec: PolicySpec): Oracle {
  switch (spec.algorithm) {
    case 'token-bucket':
    case 'gcra':
      return new RateOracle(spec)
    case 'fixed-window':
      return new FixedWindowOracle(spec)
    case 'sliding-window':
      return new SlidingWindowOracle(spec)
    case 'sliding-log':
      return new SlidingLogOracle(spec)
    case 'concurrency':
      return new ConcurrencyOracle(spec)
    case 'all-of':
      return new AllOfOracle(spec.parts.map(oracleFor))
  }
}
