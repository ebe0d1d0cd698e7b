import { PolicyError } from '../../errors.js'
import { checkedOpenRequest, checkSpent, learnedBy, type OpenOptions, requireNoPermits } from '../../holds/hold.js'
import type { HoldAnswer, HoldsById } from '../../holds/holds-by-id.js'
import type { Key } from '../../key.js'
import { isInteger } from '../../options/option-checks.js'
import { decisionOf, type HoldOperation, type HoldRecord, newOperationId } from '../backend.js'
import type { WorkPlace } from './work-place.js'

const ID = /^[0-9a-f]{32}$/
/** That of the step that opened it counts. */
const ANY_TTL_US = 1_000_000

export class StoredHoldsById implements HoldsById {
  private readonly place: WorkPlace

  constructor(place: WorkPlace) {
    this.place = place
  }

  async open(key: Key, id: string, options: OpenOptions = {}): Promise<HoldAnswer> {
    const request = checkedOpenRequest(options)
    const { inForce } = this.place
    requireNoPermits(inForce.policy.policies ?? [inForce.policy])
    const { ttlUs, over, most } = request
    const expected = this.place.expected(key, request)
    const kept = { call: 0, waits: over === 'wait', ...(most < Number.POSITIVE_INFINITY && { most }) }
    const answer = await this.step(key, id, { spent: 0, hold: expected, ttlUs, isDebt: over === 'finish' }, kept)
    this.place.record(key, expected, answer.decision)
    return answer
  }

  /** As an open for which there is never room: no grant is at least 1 where none is wanted. */
  async peek(key: Key, id: string): Promise<HoldAnswer> {
    const answer = await this.step(key, id, { spent: 0, hold: 1, ttlUs: ANY_TTL_US, isDebt: false, least: 1 }, { call: 0 })
    return answer.isDone || answer.fault !== undefined ? answer : { ...answer, fault: 'unknown' }
  }

  async add(key: Key, id: string, cost: number, call?: number): Promise<HoldAnswer> {
    checkSpent(cost)
    checkCall(call)
    return this.step(key, id, { spent: cost, hold: 'rest', ttlUs: ANY_TTL_US, isDebt: false }, { call })
  }

  async close(key: Key, id: string, cost?: number, call?: number): Promise<HoldAnswer> {
    if (cost !== undefined) checkSpent(cost)
    checkCall(call)
    const answer = await this.step(key, id, { spent: 0, hold: 0, ttlUs: ANY_TTL_US, isDebt: true }, { call, total: cost })
    if (answer.isDone && answer.used > 0) this.place.learned.add(learnedBy(key), answer.used)
    this.place.freed(key, answer.decision)
    return answer
  }

  private async step(
    key: Key,
    id: string,
    step: Pick<HoldOperation, 'spent' | 'hold' | 'ttlUs' | 'isDebt'> & Partial<Pick<HoldOperation, 'least'>>,
    record: Omit<HoldRecord, 'id'>,
  ): Promise<HoldAnswer> {
    if (!ID.test(id)) throw new PolicyError('OPTION_INVALID', 'id', id, 'must be 32 hexadecimal digits')
    const { backend } = this.place.inForce.now
    const operation = { verb: 'hold', key, id: newOperationId(), want: 0, least: 0, ...step, record: { ...record, id } } as const
    const answer = await backend.execute(operation)
    const { rest = 0, granted = 0, forUs = 0, used = 0, over = 0, spent = 0, debt = 0, fault } = answer.hold ?? {}
    // The record of a hold outlives it.
    const held = forUs > 0 ? rest + granted : 0
    return { isDone: answer.done, decision: decisionOf(answer), held, used, over, spent, debt, fault }
  }
}

/** 0 is the step that opens. */
function checkCall(call: unknown): void {
  if (call === undefined || isInteger(call, 1, Number.MAX_SAFE_INTEGER)) return
  throw new PolicyError('OPTION_INVALID', 'call', call, 'must be an integer >= 1')
}
