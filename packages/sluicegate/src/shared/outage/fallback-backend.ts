import type { WaitRequest } from '../../arguments.js'
import type { Decision } from '../../decision/decision.js'
import { isClosed, isOutage } from '../../errors.js'
import type { OpenOptions } from '../../holds/hold.js'
import { partsOf } from '../../key.js'
import type { Grant } from '../../lease/grant.js'
import type { Key } from '../../limiter.js'
import type { Answer, Backend, LeaseRequest, Operation } from '../backend.js'
import type { CallGuard } from '../calls/call-guard.js'
import type { Outage } from './outage.js'

/** Adds the option `outage` to a backend: while that cannot be reached, this process decides takes, peeks and reservations. */
export class FallbackBackend implements Backend {
  private readonly backend: Backend
  private readonly outage: Outage
  private readonly guard: CallGuard

  constructor(backend: Backend, outage: Outage, guard: CallGuard) {
    this.backend = backend
    this.outage = outage
    this.guard = guard
  }

  execute(operation: Operation): Promise<Answer> {
    const answer = this.backend.execute(operation)
    const { verb, key } = operation
    switch (verb) {
      case 'take':
      case 'reserve':
        return answer.catch((error) => inOutage(error, () => this.takeWithout(key, operation.cost)))
      case 'peek':
        return answer.catch((error) => inOutage(error, () => this.outage.peek(key, operation.cost, this.pausedMs(key))))
      default:
        return answer
    }
  }

  lease(request: LeaseRequest): Promise<Grant> {
    return this.backend.lease(request)
  }

  /** A take that does not ask the backend. */
  takeWithout(key: Key, cost: number): Decision {
    return this.outage.take(key, cost, this.pausedMs(key))
  }

  /** Opens work that the backend does not know: a hold, or a decision where nothing is counted or nothing passes. */
  openWithout(key: Key, options: OpenOptions & { readonly expect: number }): Decision {
    return this.outage.open(key, options, this.pausedMs(key))
  }

  waitWithout(request: WaitRequest): Promise<Decision> {
    return this.outage.wait(request, this.pausedMs(request.key))
  }

  private pausedMs(key: Key): number {
    let ms = 0
    for (const own of partsOf(key)) ms = Math.max(ms, this.guard.pausedMs(own))
    return ms
  }
}

/** Calls under way when the limiter is closed get an answer, too: nobody may be waiting for it any more, and a rejection would end the process. */
function inOutage(error: unknown, decide: () => Decision): Answer {
  if (!isOutage(error) && !isClosed(error)) throw error
  const decision = decide()
  return { done: decision.allowed, decision }
}
