import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import { storedNames } from '../policy/stored-name.js'
import { type Answer, type Backend, type CallerSignal, isGranted, type LeaseRequest, type Operation } from '../shared/backend.js'
import { encodingsOf } from '../shared/steps/policy-encoding.js'
import { StepBackend } from '../shared/steps/step-backend.js'
import type { StoreLanes } from './store-lanes.js'
import { isStepped, NoSteps, StoreSteps } from './store-steps.js'
import { SwapBackend } from './swap-backend.js'

/**
 * The backend of a policy in a store: steps where the store computes them, else swaps.
 *
 * @param inForce the backends of a limiter; undefined for the budgets of regions, of which any process may give back what another leased.
 */
export function backendIn(
  lanes: StoreLanes,
  policy: Policy,
  lengthOf: (policy: Policy) => number,
  prefix: string,
  inForce: Map<string, SwapBackend> | undefined,
  names: readonly string[] = storedNames(policy),
): Backend {
  const name = `${policy.algorithm} ${policy.name}`
  const swaps = new SwapBackend(lanes, policy, lengthOf, prefix, inForce === undefined ? 'shared' : inForce.get(name), names)
  inForce?.set(name, swaps)
  if (lanes.steps === undefined || !isStepped(policy)) return swaps
  return new SteppingBackend(new StepBackend(new StoreSteps(lanes.steps, prefix), encodingsOf(policy, lengthOf, names), () => ''), swaps)
}

/** Steps, while the store makes them: a table may lack what they need. Each form reads what the other has written. */
class SteppingBackend implements Backend {
  private readonly steps: StepBackend
  private readonly swaps: SwapBackend

  constructor(steps: StepBackend, swaps: SwapBackend) {
    this.steps = steps
    this.swaps = swaps
  }

  execute(operation: Operation, signal?: CallerSignal): Promise<Answer> {
    // What was swapped goes back the same way.
    if (operation.verb === 'giveBack' && this.swaps.hasCharged(operation.charge)) return this.swaps.execute(operation, signal)
    return this.steps.execute(operation, signal).catch((error) => {
      if (!(error instanceof NoSteps)) throw error
      // A step has reserved it before something was held of the key.
      if (operation.verb === 'giveBack' && !isGranted(operation.charge))
        return this.swaps.giveBackReserved(operation.charge, operation.tokens)
      return this.swaps.execute(operation, signal)
    })
  }

  lease(request: LeaseRequest, signal?: CallerSignal): Promise<Grant> {
    return this.steps.lease(request, signal).catch((error) => {
      if (error instanceof NoSteps) return this.swaps.lease(request, signal)
      throw error
    })
  }
}
