import { type Decision, type Key, StoreError } from 'sluicegate'
import type { CallRate } from 'sluicegate/rate-table'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Awaitable } from '../engine/awaitable.js'
import { type Engine, type ServedPolicy, whenDone } from '../engine/engine.js'
import type { ServedReservation } from '../engine/served-policy.js'
import type { Methods } from './exchange.js'
import type { Crossed } from './primary-storage.js'

type HeldPermit = Decision & { release(): Awaitable<boolean>; heartbeat(): Awaitable<boolean> }

/** Policies that workers added, by the workers that use them: the last one that drops a policy removes it. */
export type AddedPolicies = Map<string, Set<number>>

/**
 * What a worker calls in the primary process: one step of its engine each, counted by the worker. Permits and reservations of the worker
 * are kept by number. When the worker ends, its permits end after their time and its reservations stay charged.
 */
export function decisionSteps(engine: Engine, added: AddedPolicies, slot: number): Methods & { end(): void } {
  const permits = new Map<number, HeldPermit>()
  const reservations = new Map<number, ServedReservation>()
  let last = 0
  const policy = (name: string): ServedPolicy => {
    const served = engine.policy(name)
    if (served === undefined) throw new StoreError('CLOSED', `there is no policy "${name}" any more`)
    return served
  }
  const drop = (name: string): void => {
    const users = added.get(name)
    if (!users?.delete(slot) || users.size > 0) return
    added.delete(name)
    engine.remove(name)
  }
  const endReservation = (handle: number, end: (reservation: ServedReservation) => Awaitable<Decision>): Awaitable<Decision> => {
    const reservation = reservations.get(handle)
    if (reservation === undefined) throw new StoreError('CLOSED', 'the reservation has ended')
    const state = whenDone(end(reservation), plain) as Awaitable<Decision>
    reservations.delete(handle)
    return state
  }
  return {
    serve(config: PolicyConfig): void {
      const { name } = config.policy
      const users = added.get(name)
      if (users !== undefined) users.add(slot)
      else if (engine.policy(name) === undefined) {
        engine.add(config)
        added.set(name, new Set([slot]))
      }
    },
    drop,
    take: (name: string, key: Key, cost: number, floor: number) =>
      whenDone(policy(name).takeAbove(key, cost, floor), (decision): Crossed => {
        if (!decision.allowed || !('release' in decision)) return { decision: plain(decision), handle: undefined }
        permits.set(++last, decision as HeldPermit)
        return { decision: plain(decision), handle: last }
      }),
    release(handle: number): Awaitable<boolean> {
      const permit = permits.get(handle)
      permits.delete(handle)
      return permit?.release() ?? false
    },
    heartbeat: (handle: number): Awaitable<boolean> => permits.get(handle)?.heartbeat() ?? false,
    peek: (name: string, key: Key, cost: number) => whenDone(policy(name).peekAbove(key, cost, 0), plain),
    reserve: (name: string, key: Key, cost: number) =>
      whenDone(policy(name).reserveAbove(key, cost, 0), (reservation): Crossed => {
        const decision = plain(reservation.decision)
        if (!decision.allowed) return { decision, handle: undefined }
        reservations.set(++last, reservation)
        return { decision, handle: last }
      }),
    settle: (handle: number, cost: number) => endReservation(handle, (reservation) => reservation.settle(cost)),
    cancel: (handle: number) => endReservation(handle, (reservation) => reservation.cancel()),
    lapse: (handle: number): void => void reservations.delete(handle),
    refund: (name: string, key: Key, tokens: number) => whenDone(policy(name).refund(key, tokens), plain),
    penalize: (name: string, key: Key, tokens: number) => whenDone(policy(name).penalize(key, tokens), plain),
    block: (name: string, key: Key, forMs: number) => whenDone(policy(name).block(key, forMs), plain),
    reset: (name: string, key: Key) => whenDone(policy(name).reset(key), plain),
    throttle: (key: string, rate: CallRate, quantity: number) => engine.callRates.throttle(key, rate, quantity),
    end(): void {
      for (const name of [...added.keys()]) drop(name)
    },
  }
}

/** The figures of a decision: methods do not cross a channel. */
function plain(decision: Decision): Decision {
  const figures = Object.fromEntries(Object.entries(decision).filter(([, value]) => typeof value !== 'function')) as unknown as Decision
  return decision.parts === undefined ? figures : { ...figures, parts: decision.parts.map(plain) }
}
