import { bindsMore } from '../combined-decision.js'
import type { Served } from './header-format.js'

/** Where a version has room for one: what denies for the longest, else what has the least left. */
export function bindingLimit(served: readonly Served[]): Served {
  return served.reduce((binding, each) => (bindsMore(each.decision, binding.decision) ? each : binding))
}
