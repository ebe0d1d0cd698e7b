import { attachLimiter, type Limiter } from 'sluicegate'
import type { ParentChannel } from 'sluicegate/cluster'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { EngineLimiter, LimiterMaking } from '../engine/engine-limiter.js'
import { reserveNowOf } from '../engine/reserve-now.js'
import { takeAbove } from '../engine/take-above.js'
import type { Exchange } from './exchange.js'
import type { SharedTable, SharedTables } from './owned-policies.js'
import { OwnerStorage } from './owner-storage.js'

/**
 * In a worker thread: keys in tables of the primary thread, whose memory is shared. A decision is a step of this thread there. Policies without a shared
 * table, as those with tiers, are decided by the primary thread.
 */
export class ThreadStorage extends OwnerStorage {
  readonly #limiters = new Set<ThreadLimiter>()
  #tables: SharedTables

  constructor(calls: Exchange, channel: ParentChannel, tables: SharedTables) {
    super(calls, channel)
    this.#tables = tables
  }

  override limiter(config: PolicyConfig, making: LimiterMaking): EngineLimiter {
    const limiter: ThreadLimiter = threadLimiter(super.limiter(config, making), config.policy.name, making.hotKeys, () =>
      this.#limiters.delete(limiter),
    )
    this.#limiters.add(limiter)
    // At the start. Those of a reload have their tables afterwards.
    limiter.use(this.#tables)
    return limiter
  }

  /** The tables as they are after a reload. */
  use(tables: SharedTables): void {
    this.#tables = tables
    for (const limiter of this.#limiters) limiter.use(tables)
  }
}

interface ThreadLimiter extends EngineLimiter {
  use(tables: SharedTables): void
}

function threadLimiter(primary: EngineLimiter, name: string, hotKeys: number, onClose: () => void): ThreadLimiter {
  let attached: { readonly number: number; readonly limiter: Limiter; readonly stored: EngineLimiter } | undefined
  const at = (): EngineLimiter => attached?.stored ?? primary
  const attach = ({ number, handle }: SharedTable): void => {
    const limiter = attachLimiter(handle, { hotKeys })
    attached = {
      number,
      limiter,
      stored: Object.assign(limiter, { isShared: true, reserve: reserveNowOf(limiter), storeStats: () => undefined }),
    }
  }
  return {
    // Others decide in between, and answers of the primary thread come later.
    isShared: true,
    get policy() {
      return at().policy
    },
    take: (key, cost) => at().take(key, cost),
    takeAbove: (key, cost, floor) => takeAbove(at(), key, cost, floor),
    peek: (key, cost) => at().peek(key, cost),
    reserve: (key, cost) => at().reserve(key, cost),
    refund: (key, tokens) => at().refund(key, tokens),
    penalize: (key, tokens) => at().penalize(key, tokens),
    block: (key, forMs) => at().block(key, forMs),
    reset: (key) => at().reset(key),
    // The primary thread has changed the table before.
    update: (policy) => primary.update(policy),
    // The primary thread counts what is in the table.
    stats: () => primary.stats(),
    storeStats: () => undefined,
    hotKeys: (n) => attached?.limiter.hotKeys(n) ?? primary.hotKeys(n),
    snapshot: () => undefined,
    close() {
      onClose()
      attached?.limiter.close()
      primary.close()
    },
    use(tables) {
      const table = tables.get(name)
      if (table?.number === attached?.number) return
      attached?.limiter.close()
      attached = undefined
      if (table !== undefined) attach(table)
    },
  }
}
