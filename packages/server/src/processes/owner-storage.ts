import { createLimiter, type Decision, type HotKeys, type Policy, type SharedLimiter } from 'sluicegate'
import { type ParentChannel, primary } from 'sluicegate/cluster'
import type { CallRate, Throttled } from 'sluicegate/rate-table'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { type EngineLimiter, type EngineRateTable, type LimiterMaking, NO_TABLE, type Storage } from '../engine/engine-limiter.js'
import { reserveNowOf } from '../engine/reserve-now.js'
import type { Exchange } from './exchange.js'

const NO_HOT_KEYS: HotKeys = { demand: [], denials: [] }
/** How long a take waits for the primary process, which a snapshot of a large table stops for most of a second. */
const TIMEOUT = '2s'

/** The limiter of a name in this process. Tiers share it: the primary process knows which key has which. */
interface Opened {
  readonly limiter: SharedLimiter
  users: number
}

/** In a worker process: keys in the memory of the primary process, which leases tokens of those that are taken often. */
export class OwnerStorage implements Storage {
  readonly name = 'memory'
  readonly isReachable = true
  /** The primary process knows what is announced. */
  readonly announce = (policy: Policy, key: string): Promise<Decision> => this.#calls.call('announce', policy, key)
  readonly #calls: Exchange
  readonly #channel: ParentChannel
  readonly #opened = new Map<string, Opened>()

  constructor(calls: Exchange, channel: ParentChannel) {
    this.#calls = calls
    this.#channel = channel
  }

  /** It is opened by the first call: policies of a reload are prepared before the primary process has them. */
  limiter(config: PolicyConfig, { hotKeys }: LimiterMaking): EngineLimiter {
    let opened: Opened | undefined
    let own = config.policy
    const at = (): SharedLimiter => {
      opened ??= this.#open(config, hotKeys)
      return opened.limiter
    }
    return {
      isShared: true,
      get policy() {
        return own
      },
      take: (key, cost) => at().take(key, cost),
      peek: (key, cost) => at().peek(key, cost),
      reserve: (key, cost) => reserveNowOf(at())(key, cost),
      refund: (key, tokens) => at().refund(key, tokens),
      penalize: (key, tokens) => at().penalize(key, tokens),
      block: (key, forMs) => at().block(key, forMs),
      reset: (key) => at().reset(key),
      // The primary process has changed its own before, and says so to the limiter.
      update(next) {
        own = next
      },
      stats: () => NO_TABLE,
      storeStats: () => undefined,
      hotKeys: (n) => opened?.limiter.hotKeys(n) ?? NO_HOT_KEYS,
      snapshot: () => undefined,
      close: () => {
        if (opened !== undefined) this.#close(config.policy.name, opened)
        opened = undefined
      },
    }
  }

  restored(): undefined {
    return undefined
  }

  rateTable(): EngineRateTable {
    return {
      throttle: (key: string, rate: CallRate, quantity: number) => this.#calls.call<Throttled>('throttle', key, rate, quantity),
      outageDecisions: 0,
      stats: () => NO_TABLE,
      hotKeys: () => NO_HOT_KEYS,
      snapshot: () => undefined,
      close() {},
    }
  }

  async connect(): Promise<void> {}

  async close(): Promise<void> {}

  #open(config: PolicyConfig, hotKeys: number): Opened {
    const { name } = config.policy
    const known = this.#opened.get(name)
    if (known !== undefined) {
      known.users++
      return known
    }
    // Before the limiter's first message. The primary process has tiers itself.
    this.#calls.call('serve', { ...config, tiers: undefined }).catch(() => undefined)
    const store = primary({ process: this.#channel })
    const opened = { limiter: createLimiter(config.policy, { store, timeout: TIMEOUT, hotKeys }), users: 1 }
    this.#opened.set(name, opened)
    return opened
  }

  #close(name: string, opened: Opened): void {
    if (--opened.users > 0) return
    this.#opened.delete(name)
    opened.limiter.close()
    this.#calls.call('drop', name).catch(() => undefined)
  }
}
