import type { TargetPlan } from './load-plan.js'
import type { LoadTarget } from './load-target.js'
import { httpTarget } from './targets/http-target.js'

/** Opens what receives the load. */
export async function makeTarget(plan: TargetPlan): Promise<LoadTarget> {
  return httpTarget(plan)
}
