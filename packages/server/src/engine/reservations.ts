import { type Decision, type Key, PolicyError, StoreError } from 'sluicegate'
import { DEFAULT_MAX_SETTLE } from 'sluicegate-config/table-size.js'
import { type Awaitable, answersOf, whenDone } from './awaitable.js'
import { HeldById } from './held-by-id.js'
import type { Latency } from './outcome.js'
import type { ServedPolicy } from './served-policy.js'
import { otherSlotOf, type Peers } from './shared-limiter.js'
import { type HeldPart, type ReserveAllOptions, reserveAll, type TakePart } from './take-all.js'

/** The longest time for which a reservation can be held. */
export const MAX_RESERVATION_MS = 86_400_000
const MAX_RESERVATIONS = 100_000
const MAX_RESERVATIONS_PER_KEY = 1_000

/** The answer to a reservation. */
export interface Reserved {
  /** Of each part, as `engine.takeAll` gives them. */
  readonly decisions: readonly Decision[]
  /** For {@link Reservations.settle} and {@link Reservations.cancel}; undefined when the request does not pass and nothing was charged. */
  readonly id: string | undefined
}

/** The actual cost of a reservation: the same for each part, or by part. */
export type ActualCost = number | ((part: TakePart) => number)

/**
 * Tokens taken before their exact number is known, for example those of a language model. The caller commits the actual cost; a reservation that is
 * not committed in its time lapses and stays charged as declared. They are in the memory of this process, at most 100,000 in all and 1,000 of one key.
 */
export class Reservations {
  readonly #held: HeldById<readonly HeldPart[]>
  readonly #peers: Peers | undefined
  readonly #latency: Latency | undefined

  /** @param latency receives the time of each {@link Reservations.reserve}. */
  constructor(nowMs: () => number, latency?: Latency, peers?: Peers) {
    this.#latency = latency
    this.#peers = peers
    const bounds = { what: 'open reservations', max: MAX_RESERVATIONS, maxPerKey: MAX_RESERVATIONS_PER_KEY, slot: peers?.slot }
    this.#held = new HeldById(bounds, nowMs, (parts) => {
      for (const { reservation } of parts) reservation.lapse?.()
    })
  }

  /** Open reservations. */
  get size(): number {
    return this.#held.size
  }

  /** Reservations that lapsed since the service started. */
  get lapsed(): number {
    return this.#held.expired
  }

  /**
   * Takes the tokens of all parts, or none, for at most `ttlMs`.
   *
   * @throws {TooManyHeldError} when too many are open; nothing is charged then. Also what `engine.takeAll` throws.
   */
  reserve(parts: readonly TakePart[], ttlMs: number, options?: ReserveAllOptions): Awaitable<Reserved> {
    const [first] = parts
    const keyName = first === undefined ? '' : nameOf(first.policy, first.key)
    this.#held.requireRoom(keyName)
    return whenDone(reserveAll(parts, { ...options, ...(this.#latency && { latency: this.#latency }) }), ({ decisions, held }) => ({
      decisions,
      id: held === undefined ? undefined : this.#held.add(keyName, held, ttlMs),
    })) as Awaitable<Reserved>
  }

  /**
   * Commits the actual cost: what is above it comes back, what it has above the estimate is charged too, as far as the policy's `max-settle`
   * says. Undefined when there is no such
   * reservation, or none any more. Otherwise the state of each key after it, as `peek(key, 1)`.
   *
   * @throws {PolicyError} `COST_INVALID` for an actual cost that is no whole number from 0; the reservation stays open then.
   */
  settle(id: string, actualCost: ActualCost): Awaitable<readonly Decision[] | undefined> {
    const costOf = typeof actualCost === 'number' ? () => actualCost : actualCost
    const other = this.#peers && otherSlotOf(id, this.#peers)
    if (other !== undefined) return this.#settleElsewhere(other, id, costOf)
    return this.#end(id, (parts) => {
      const costs = parts.map(({ part }) => Math.min(checkedCost(costOf(part)), mostOf(part)))
      return answersOf(parts, ({ part, reservation }, i) => stateOf(part, reservation.settle(costs[i] as number)))
    })
  }

  /** Gives everything back. Undefined when there is no such reservation, or none any more. */
  cancel(id: string): Awaitable<readonly Decision[] | undefined> {
    const other = this.#peers && otherSlotOf(id, this.#peers)
    if (other !== undefined) return this.#peers?.call<readonly Decision[]>(other, 'cancel', id)
    return this.#end(id, (parts) => answersOf(parts, ({ part, reservation }) => stateOf(part, reservation.cancel())))
  }

  /** The figures of each part, which other processes may have; undefined when there is no such reservation. */
  partsOf(id: string): readonly Omit<TakePart, 'policy' | 'priority'>[] | undefined {
    return this.#held.get(id)?.map(({ part: { policy, priority, ...figures } }) => figures)
  }

  /** {@link Reservations.settle} with the costs in the order of the parts. */
  settleParts(id: string, costs: readonly number[]): Awaitable<readonly Decision[] | undefined> {
    let next = 0
    return this.settle(id, () => costs[next++] ?? 0)
  }

  async #settleElsewhere(slot: number, id: string, costOf: (part: TakePart) => number): Promise<readonly Decision[] | undefined> {
    const parts = await this.#peers?.call<readonly TakePart[]>(slot, 'parts', id)
    if (parts === undefined) return undefined
    return this.#peers?.call<readonly Decision[]>(
      slot,
      'settle',
      id,
      parts.map((part) => checkedCost(costOf(part))),
    )
  }

  /** Frees what has lapsed. False: there is more. */
  sweep(): boolean {
    return this.#held.sweep()
  }

  #end(id: string, end: (parts: readonly HeldPart[]) => Awaitable<Decision[]>): Awaitable<readonly Decision[] | undefined> {
    const parts = this.#held.get(id)
    if (parts === undefined) return undefined
    try {
      const states = end(parts)
      this.#held.remove(id)
      return states instanceof Promise ? states.catch(unlessClosed) : states
    } catch (error) {
      // The policy was removed, and its keys with it.
      if (isClosed(error)) this.#held.remove(id)
      return unlessClosed(error)
    }
  }
}

/** The most that settles a part: taking is not penalizing. */
function mostOf({ policy, cost }: TakePart): number {
  return (policy.config.maxSettle ?? DEFAULT_MAX_SETTLE) * Math.max(1, cost)
}

/** With the soft limits that it has reached. */
function stateOf({ policy, key }: TakePart, state: Awaitable<Decision>): Awaitable<Decision> {
  return whenDone(state, (decision) => policy.spent(key, decision))
}

/** All costs are checked before the first part is settled. */
function checkedCost(cost: number): number {
  if (Number.isSafeInteger(cost) && cost >= 0) return cost
  throw new PolicyError('COST_INVALID', 'cost', cost, 'must be an integer of at least 0')
}

function isClosed(error: unknown): boolean {
  return error instanceof StoreError && error.code === 'CLOSED'
}

function unlessClosed(error: unknown): undefined {
  if (!isClosed(error)) throw error
  return undefined
}

/** A key of a policy as one text. */
export function nameOf({ name }: ServedPolicy, key: Key): string {
  return `${name}\n${typeof key === 'string' ? key : JSON.stringify(key)}`
}
