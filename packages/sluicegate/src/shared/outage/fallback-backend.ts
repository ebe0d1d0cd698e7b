import type { WaitRequest } from '../../arguments.js'
import type { Decision } from '../../decision/decision.js'
import { isOutage } from '../../errors.js'
import { partsOf } from '../../key.js'
import type { Grant } from '../../lease/grant.js'
import type { Key } from '../../limiter.js'
import type { Answer, Backend, LeaseRequest, Operation } from '../backend.js'
import type { CallGuard } from '../calls/call-guard.js'
import type { Outage } from './outage.js'

interface FallbackParts {
  readonly backend: Backend
  readonly outage: Outage
  readonly guard: CallGuard
}

/** Adds the option `outage` to a backend: while that cannot be reached, this process decides takes, peeks and reservations. */
export class FallbackBackend implements Backend {
  private readonly parts: FallbackParts

  constructor(parts: FallbackParts) {
    this.parts = parts
  }

  execute(operation: Operation): Promise<Answer> {
    const answer = this.parts.backend.execute(operation)
    const { verb, key } = operation
    switch (verb) {
      case 'take':
      case 'reserve':
        return answer.catch((error) => inOutage(error, () => this.without(key, operation.cost)))
      case 'peek':
        return answer.catch((error) => inOutage(error, () => this.parts.outage.peek(key, operation.cost, this.pausedMs(key))))
      default:
        return answer
    }
  }

  lease(request: LeaseRequest): Promise<Grant> {
    return this.parts.backend.lease(request)
  }

  /** A take that does not ask the backend. */
  without(key: Key, cost: number): Decision {
    return this.parts.outage.take(key, cost, this.pausedMs(key))
  }

  waitWithout(request: WaitRequest): Promise<Decision> {
    return this.parts.outage.wait(request, this.pausedMs(request.key))
  }

  private pausedMs(key: Key): number {
    let ms = 0
    for (const own of partsOf(key)) ms = Math.max(ms, this.parts.guard.pausedMs(own))
    return ms
  }
}

function inOutage(error: unknown, decide: () => Decision): Answer {
  if (!isOutage(error)) throw error
  const decision = decide()
  return { done: decision.allowed, decision }
}
