import type { TargetPlan } from './load-plan.js'
import type { LoadTarget } from './load-target.js'
import { engineTarget } from './targets/engine-target.js'
import { grpcTarget } from './targets/grpc-target.js'
import { httpTarget } from './targets/http-target.js'
import { respTarget } from './targets/resp-target.js'

/**
 * Opens what receives the load.
 *
 * @throws {UsageError} for a plan that does not fit the target.
 */
export async function makeTarget(plan: TargetPlan): Promise<LoadTarget> {
  switch (plan.kind) {
    case 'http':
      return httpTarget(plan)
    case 'resp':
      return respTarget(plan)
    case 'grpc':
      return grpcTarget(plan)
    case 'memory':
    case 'redis':
      return engineTarget(plan)
  }
}
