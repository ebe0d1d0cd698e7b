import type { TargetPlan } from './load-plan.js'
import type { LoadTarget, OpenEngine } from './load-target.js'

/**
 * Opens what receives the load. Only the chosen client is loaded: the others would take longer to load than a short run lasts.
 *
 * @throws {UsageError} for a plan that does not fit the target.
 */
export async function makeTarget(plan: TargetPlan, openEngine: OpenEngine): Promise<LoadTarget> {
  switch (plan.kind) {
    case 'http':
      return (await import('./targets/http-target.js')).httpTarget(plan)
    case 'resp':
      return (await import('./targets/resp-target.js')).respTarget(plan)
    case 'grpc':
      return (await import('./targets/grpc-target.js')).grpcTarget(plan)
    case 'memory':
    case 'redis':
      return openEngine(plan)
  }
}
