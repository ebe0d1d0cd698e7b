import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { Answer, Backend, Operation } from '../../../sluicegate/dist/shared/backend.js'
import type { PolicyStore } from '../../../sluicegate/dist/shared/open-store.js'
import { StoreBackend } from '../../../sluicegate/dist/store/store-backend.js'
import { StoreCalls } from '../../../sluicegate/dist/store/store-calls.js'
import { StoreLanes } from '../../../sluicegate/dist/store/store-lanes.js'
import { memoryStore } from '../../../sluicegate/dist/store-testing/index.js'
import type { Admission } from '../history/excess.js'
import type { Link } from './sim-home.js'
import type { VirtualTime } from './virtual-time.js'

/** The true budgets in a store: all verbs, as `casStore()` has them. Its grants are known by ids of their own, so that any process returns them. */
export class StoreSimHome {
  /** Takes that passed here, each when it was decided. */
  readonly admissions: Admission[] = []
  /** Messages that arrived. */
  calls = 0
  private readonly time: VirtualTime
  private readonly backends = new Map<string, Backend>()
  private readonly lanes: StoreLanes

  constructor(time: VirtualTime) {
    this.time = time
    const clock = time.clock(0, 0)
    this.lanes = new StoreLanes(new StoreCalls(memoryStore({ clock }), clock, 1000))
  }

  /** As one region sees it. */
  behind(link: Link, countRegions: () => number): PolicyStore {
    return {
      sharesGrants: true,
      places: { serverOf: () => undefined, slotOf: () => undefined },
      connect: (policy, lengthOf) => this.behindLink(this.backendOf(policy, lengthOf), link),
      countNodes: async () => countRegions(),
    }
  }

  /** At the home itself. */
  backendOf(policy: Policy, lengthOf: (policy: Policy) => number): Backend {
    const name = `${policy.name} ${policy.algorithm} ${policy.limit} ${policy.burst} ${policy.windowMs} ${lengthOf(policy)}`
    const known = this.backends.get(name)
    if (known !== undefined) return known
    const made = new StoreBackend(this.lanes, policy, lengthOf, 'home')
    this.backends.set(name, made)
    return made
  }

  private behindLink(backend: Backend, link: Link): Backend {
    return {
      execute: (operation) => link(() => this.execute(backend, operation), false),
      lease: (request) =>
        link(() => {
          this.calls++
          return backend.lease(request)
        }, false),
    }
  }

  private async execute(backend: Backend, operation: Operation): Promise<Answer> {
    this.calls++
    const { nowUs } = this.time
    const answer = await backend.execute(operation)
    if (!operation.key.toString().endsWith('@demand') && operation.verb === 'take' && answer.done)
      this.admissions.push({ atUs: nowUs, cost: operation.cost })
    // Tells apart what the home decided.
    return answer.decision === undefined || operation.verb !== 'take'
      ? answer
      : { ...answer, decision: { ...answer.decision, source: 'memory' } }
  }
}
