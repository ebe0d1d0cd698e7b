import type { Decision, Limiter } from 'sluicegate'
import { type ServableLimiter, type ServedLimiter, serveLimiter, type WorkerProcess } from 'sluicegate/cluster'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Engine, Key, ServedPolicy } from '../engine/engine.js'
import { MEMORY, type Storage } from '../engine/engine-limiter.js'
import { leaving } from '../engine/priorities.js'
import type { ServedReservation } from '../engine/served-policy.js'

/** The table of a policy for other threads. */
export interface SharedTable {
  /** Another table of the same policy has another number. */
  readonly number: number
  readonly handle: ReturnType<Limiter['handle']>
}

/** The tables of the policies that have one, by name. */
export type SharedTables = ReadonlyMap<string, SharedTable>

/** Keys in memory, whose hot ones are counted where callers are. */
export const UNCOUNTED_MEMORY: Storage = {
  ...MEMORY,
  limiter: (config, making) => MEMORY.limiter(config, { ...making, hotKeys: 0 }),
  restored: (config, making, saved) => MEMORY.restored(config, { ...making, hotKeys: 0 }, saved),
}

/** A policy as it is served: by its table, or where it has none of its own, as with tiers, by the engine. */
interface Served {
  readonly by: object
  readonly isExact: boolean
  readonly limiter: ServedLimiter
}

/** In the primary process: the policies of its engine, whose keys it owns, served to all workers. */
export class OwnedPolicies {
  readonly #engine: Engine
  /** Threads take from tables by themselves. */
  readonly #sharesTables: boolean
  readonly #served = new Map<string, Served>()
  readonly #workers = new Set<WorkerProcess>()
  /** Policies that workers added, by the slots that use them: the last one that drops a policy removes it. */
  readonly #added = new Map<string, Set<number>>()
  readonly #numbers = new WeakMap<object, SharedTable>()
  #last = 0

  constructor(engine: Engine, sharesTables: boolean) {
    this.#engine = engine
    this.#sharesTables = sharesTables
    this.update()
  }

  /** Serves a worker until it ends. */
  serve(worker: WorkerProcess): void {
    this.#workers.add(worker)
    for (const { limiter } of this.#served.values()) limiter.serve(worker)
    worker.on('exit', () => this.#workers.delete(worker))
  }

  /** Serves the policies that the engine has now. Returns the tables that threads share. */
  update(): SharedTables | undefined {
    const tables = new Map<string, SharedTable>()
    for (const policy of this.#engine.policies) {
      const table = this.#tableOf(policy)
      if (table === undefined) this.#update(policy)
      else tables.set(policy.name, table)
      if (table !== undefined) this.#end(policy.name)
    }
    for (const name of [...this.#served.keys()]) if (this.#engine.policy(name) === undefined) this.#end(name)
    return this.#sharesTables ? tables : undefined
  }

  /** A worker uses a policy, which the engine may not have. */
  add(slot: number, config: PolicyConfig): void {
    const { name } = config.policy
    const users = this.#added.get(name)
    if (users !== undefined) users.add(slot)
    else if (this.#engine.policy(name) === undefined) {
      this.#update(this.#engine.add(config))
      this.#added.set(name, new Set([slot]))
    }
  }

  drop(slot: number, name: string): void {
    const users = this.#added.get(name)
    if (!users?.delete(slot) || users.size > 0) return
    this.#added.delete(name)
    this.#engine.remove(name)
    this.#end(name)
  }

  /** The worker of a slot has ended. */
  ended(slot: number): void {
    for (const name of [...this.#added.keys()]) this.drop(slot, name)
  }

  /** Those of policies that a worker may remove are not shared. */
  #tableOf({ name, sharedLimiter: limiter }: ServedPolicy): SharedTable | undefined {
    if (!this.#sharesTables || limiter?.handle === undefined || this.#added.has(name)) return undefined
    const table = this.#numbers.get(limiter) ?? { number: ++this.#last, handle: limiter.handle() }
    this.#numbers.set(limiter, table)
    return table
  }

  #update(policy: ServedPolicy): void {
    const { name, sharedLimiter: limiter } = policy
    const by = limiter?.handle === undefined ? policy : limiter
    // A lease says nothing about what is left, which classes of requests depend on.
    const isExact = policy.config.priorities !== undefined
    const known = this.#served.get(name)
    if (known?.by === by && known.isExact === isExact) {
      known.limiter.update(policy.policy)
      return
    }
    this.#end(name)
    const own = by === policy ? servableOf(policy) : (limiter as unknown as Limiter)
    const served = serveLimiter(own, isExact ? { mode: 'exact' } : {})
    this.#served.set(name, { by, isExact, limiter: served })
    for (const worker of this.#workers) served.serve(worker)
  }

  #end(name: string): void {
    this.#served.get(name)?.limiter.close()
    this.#served.delete(name)
  }
}

/** In memory, where all answers are there at once. Workers name no keys: they send them in the order of the policies. */
function servableOf(served: ServedPolicy): ServableLimiter {
  return {
    get policy() {
      return served.policy
    },
    take: (key, cost = 1) => served.uncounted.take(key as Key, cost, leaving(0)) as Decision,
    peek: (key, cost = 1) => served.uncounted.peek(key as Key, cost, leaving(0)) as Decision,
    reserve(key, cost) {
      const { decision, settle, cancel } = served.uncounted.reserve(key as Key, cost, leaving(0)) as ServedReservation
      const { allowed, retryAfterMs } = decision
      return {
        allowed,
        waitMs: allowed ? 0 : retryAfterMs,
        decision,
        settle: (actualCost) => settle(actualCost) as Decision,
        cancel: () => cancel() as Decision,
      }
    },
    refund: (key, tokens) => served.refund(key as Key, tokens) as Decision,
    penalize: (key, tokens) => served.penalize(key as Key, tokens) as Decision,
    block: (key, forMs) => served.block(key as Key, forMs as number) as Decision,
    reset: (key) => served.reset(key as Key) as Decision,
  }
}
