import { isOutage, StoreError } from '../errors.js'
import type { Grant } from '../lease/grant.js'
import type { Key } from '../limiter.js'
import {
  type Answer,
  type Backend,
  type CancelSignal,
  type ChargingOperation,
  type GiveBackOperation,
  isGranted,
  type LeaseRequest,
  type Operation,
  type Reserved,
} from '../shared/backend.js'
import { KeyFault } from '../shared/calls/call-guard.js'
import type { HomeWatch } from './home-watch.js'
import type { RegionShare } from './region-share.js'

/**
 * Decides by a call to the home. While that cannot be reached the region's share decides, and no take waits to see whether the home is back
 * ({@link HomeWatch}).
 */
export class HomeBackend implements Backend {
  readonly home: Backend
  readonly share: RegionShare
  private readonly watch: HomeWatch

  constructor(home: Backend, watch: HomeWatch, share: RegionShare) {
    this.home = home
    this.watch = watch
    this.share = share
  }

  execute(operation: Operation, signal?: CancelSignal): Promise<Answer> {
    const { verb, key } = operation
    switch (verb) {
      case 'take':
      case 'reserve':
        return this.orShare(
          key,
          () => this.home.execute(operation, signal),
          () => this.share.charge(operation as ChargingOperation, signal),
        )
      case 'peek':
        return this.orShare(
          key,
          () => this.home.execute(operation, signal),
          () => this.share.peek(key, operation.cost, signal),
        )
      case 'reset':
        return Promise.all([this.atHome(operation, signal), this.share.reset(key)]).then(([answer]) => answer)
      case 'giveBack':
        return isGranted(operation.charge) ? this.atHome(operation, signal) : this.gaveBack(operation, operation.charge, signal)
      case 'redeem':
        return this.share.hasMade(operation.charge) ? this.share.peek(key, 1, signal) : this.atHome(operation, signal)
      case 'release':
      case 'heartbeat':
        return this.permit(operation, signal)
      default:
        return this.atHome(operation, signal)
    }
  }

  lease(request: LeaseRequest, signal?: CancelSignal): Promise<Grant> {
    return this.home.lease(request, signal)
  }

  /** The same, or nothing while the home is out: each take is decided by itself then, so that its decision says so. */
  leaseOrNone(request: LeaseRequest, signal?: CancelSignal): Promise<Grant | undefined> {
    return this.orShare<Grant | undefined>(
      request.key,
      () => this.home.lease(request, signal),
      () => Promise.resolve(undefined),
    )
  }

  /** Of what can be decided in the region as well. */
  private async orShare<T>(key: Key, atHome: () => Promise<T>, without: () => Promise<T>): Promise<T> {
    const { home, watch, share } = this
    if (watch.isOut(key, !share.isOpen)) {
      watch.probe(key, () => home.execute({ verb: 'peek', key, cost: 1 }).then(() => share.homeAnswered(key)))
      return without()
    }
    try {
      const answer = await atHome()
      share.homeAnswered(key)
      return answer
    } catch (error) {
      if (!isOutage(error)) throw error
      return without()
    }
  }

  /** Of the home alone. The region's store is well when that fails: it opens no circuit of it. */
  private atHome(operation: Operation, signal?: CancelSignal): Promise<Answer> {
    return this.home.execute(operation, signal).catch(unreachable)
  }

  private async gaveBack(operation: GiveBackOperation, charge: Reserved, signal?: CancelSignal): Promise<Answer> {
    const { home, watch, share } = this
    const { key, tokens } = operation
    if (share.hasMade(charge)) return share.giveBack(key, charge, tokens)
    if (!watch.isOut(key, !share.isOpen)) return this.atHome(operation, signal)
    watch.later(() => home.execute(operation))
    return { ...(await share.peek(key, 1, signal)), done: true }
  }

  /** A permit of the region's share is known here alone. While the home is out, the end of one of its permits is told it later. */
  private async permit(operation: Extract<Operation, { verb: 'release' | 'heartbeat' }>, signal?: CancelSignal): Promise<Answer> {
    const { home, watch, share } = this
    const { key, verb } = operation
    let answer: Answer | undefined
    let fault: unknown
    try {
      if (!watch.isOut(key, !share.isOpen)) answer = await home.execute(operation, signal)
    } catch (error) {
      if (!isOutage(error)) throw error
      fault = error
    }
    if (answer?.done) return answer
    const own = await share.permit(operation, signal)
    if (own.done || answer !== undefined) return own.done ? own : (answer as Answer)
    if (verb === 'heartbeat') return unreachable(fault ?? new StoreError('OUTAGE', 'the home does not answer'))
    // Once more does no harm.
    watch.later(() => home.execute(operation))
    return { done: true }
  }
}

function unreachable(error: unknown): never {
  throw isOutage(error) ? new KeyFault('the home of the budget does not answer', { cause: error }) : error
}
