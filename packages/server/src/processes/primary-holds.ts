import { type Key, StoreError } from 'sluicegate'
import {
  type Added,
  type Closed,
  type Cost,
  type Engine,
  type HoldFault,
  type HoldVerbs,
  MAX_HOLD_WAIT_MS,
  type Opened,
  type ServedPolicy,
  type WorkAsked,
} from '../engine/engine.js'
import type { Exchange, Methods } from './exchange.js'

/** An `add` may wait there. */
const WAITING = { timeoutMs: MAX_HOLD_WAIT_MS + 2_000 } as const

/** In a worker: work that is open in the primary process, which has the keys. Any worker answers for it, and one that ends takes none along. */
export class PrimaryHolds implements HoldVerbs {
  readonly #calls: Exchange

  constructor(calls: Exchange) {
    this.#calls = calls
  }

  open({ name }: ServedPolicy, key: Key, asked: WorkAsked, floor: number): Promise<Opened | HoldFault> {
    return this.#calls.call('open', name, key, asked, floor)
  }

  add(id: string, cost: Cost, call?: number): Promise<Added | HoldFault> {
    return this.#calls.callWith(WAITING, 'add', id, cost, call)
  }

  close(id: string, cost?: Cost, call?: number): Promise<Closed | HoldFault> {
    return this.#calls.call('close', id, cost, call)
  }
}

/** What the primary process answers. */
export function holdMethods(engine: Engine): Methods {
  const { holds } = engine
  return {
    open(name: string, key: Key, asked: WorkAsked, floor: number) {
      const served = engine.policy(name)
      // A worker may have a policy a moment longer than the primary process.
      if (served === undefined) throw new StoreError('CLOSED', `the policy ${JSON.stringify(name)} was removed`)
      return holds.open(served, key, asked, floor)
    },
    add: (id: string, cost: Cost, call: number | undefined) => holds.add(id, cost, call),
    close: (id: string, cost: Cost | undefined, call: number | undefined) => holds.close(id, cost, call),
  }
}
