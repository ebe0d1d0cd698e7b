import type { Awaitable } from '../../awaitable.js'
import type { Decision } from '../../decision/decision.js'
import { checkedOpenRequest, type Hold, type OpenOptions, type OpenRequest, requireNoPermits } from '../../holds/hold.js'
import type { HoldsById } from '../../holds/holds-by-id.js'
import { isHold } from '../../holds/metered.js'
import { OpenedHold } from '../../holds/opened-hold.js'
import { uncountedHold } from '../../holds/uncounted-hold.js'
import type { Key } from '../../limiter.js'
import { decisionOf, newOperationId } from '../backend.js'
import { OpensTogether } from './opens-together.js'
import { SharedWork } from './shared-work.js'
import { StoredHoldsById } from './stored-holds-by-id.js'
import type { HoldStep, WorkPlace } from './work-place.js'

/**
 * Holds over a store (ADR 26). The store keeps what is held; of that it grants some to this process, which spends it by itself. So most pieces of
 * work need no call.
 *
 * 1. `begin` holds what the work will probably cost, in one step that {@link OpensTogether} makes for all that are alike, and gets a first grant.
 * 2. `add` of {@link SharedWork} spends of the grant. When little of it is left, a step ahead of need reports what was spent and gets more; a piece
 *    that is larger than the grant waits for its step.
 * 3. `close` reports the rest, and frees what is still held.
 *
 * A step is a `HoldOperation`: Redis computes it in `lua/scripts/hold.lua`, all other stores by its twin `holdStep`.
 */
export class SharedHolds {
  private readonly place: WorkPlace
  private readonly together: OpensTogether
  /** For work that any process goes on with. */
  readonly byId: HoldsById

  constructor(place: WorkPlace) {
    this.place = place
    this.together = new OpensTogether((operation) => this.place.answerTo(operation))
    this.byId = new StoredHoldsById(this.place)
  }

  async begin(key: Key, options: OpenOptions): Promise<Hold<Awaitable<boolean>, 'later'>> {
    const { inForce, waiting } = this.place
    const request = checkedOpenRequest(options)
    requireNoPermits(inForce.policy.policies ?? [inForce.policy])
    const expected = this.place.expected(key, request)
    if (waiting.isQueued(key)) return this.refused(key, expected, await waiting.deny(key, expected))
    const sentUs = this.place.ticker.read()
    const want = this.place.first(expected)
    const step = stepOf(key, request)
    const answer = await this.together.open({ ...step, spent: 0, hold: expected, want, least: 1 })
    if (answer !== undefined && !answer.done) return this.refused(key, expected, decisionOf(answer))
    const decision = answer === undefined ? this.without(key, expected, request) : decisionOf(answer)
    if (!decision.allowed) return this.refused(key, expected, decision)
    this.place.record(key, expected, decision)
    const work = new SharedWork(this.place, step, request, isHold(decision) ? decision : undefined)
    if (answer !== undefined) work.answered(answer, sentUs)
    return new OpenedHold<Awaitable<boolean>, 'later'>(decision, work)
  }

  close(): void {
    this.place.close()
  }

  /** In an outage work begins as takes are decided: what it will cost is held of the share. Debt is for the store. */
  private without(key: Key, expect: number, { ttlUs, over }: OpenRequest): Decision {
    return this.place.inForce.fallback.openWithout(key, { expect, ttl: ttlUs / 1000, over: over === 'wait' ? 'wait' : 'cut' })
  }

  private refused(key: Key, expected: number, decision: Decision): Hold<Awaitable<boolean>, 'later'> {
    const recorded = this.place.record(key, expected, decision)
    const hold = uncountedHold(recorded)
    const close = hold.close.bind(hold)
    return Object.assign(hold, { close: async (cost?: number) => close(cost) })
  }
}

function stepOf(key: Key, { ttlUs }: OpenRequest): HoldStep {
  // Half a ttl longer than here, so that an add has to reach the store only when half a ttl has gone by.
  return { verb: 'hold', key, id: newOperationId(), ttlUs: Math.ceil(ttlUs * 1.5), isDebt: false }
}
