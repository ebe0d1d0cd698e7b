import type { Decision, HotKeys, Key, Policy } from 'sluicegate'
import type { CallRate, Throttled } from 'sluicegate/rate-table'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import {
  type LimiterMaking,
  NO_TABLE,
  type Storage,
  type StoredLimiter,
  type StoredRateTable,
  type StoredReservation,
} from '../engine/stored-limiter.js'
import type { Exchange } from './exchange.js'

const NO_HOT_KEYS: HotKeys = { demand: [], denials: [] }

/** A decision that crossed the channel, and the number by which the primary process knows what is held of it. */
export interface Crossed {
  readonly decision: Decision
  readonly handle: number | undefined
}

/** In a worker process: keys in the memory of the primary process. Each decision is one step there, so that all workers share each budget exactly. */
export class PrimaryStorage implements Storage {
  readonly name = 'memory'
  readonly isReachable = true
  readonly #primary: Exchange

  constructor(primary: Exchange) {
    this.#primary = primary
  }

  limiter(config: PolicyConfig, _: LimiterMaking): StoredLimiter {
    return limiterAt(this.#primary, config)
  }

  restored(): undefined {
    return undefined
  }

  rateTable(): StoredRateTable {
    return {
      throttle: (key: string, rate: CallRate, quantity: number) => this.#primary.call<Throttled>('throttle', key, rate, quantity),
      outageDecisions: 0,
      stats: () => NO_TABLE,
      hotKeys: () => NO_HOT_KEYS,
      snapshot: () => undefined,
      close() {},
    }
  }

  async connect(): Promise<void> {}

  async close(): Promise<void> {}
}

function limiterAt(primary: Exchange, config: PolicyConfig): StoredLimiter {
  const { name } = config.policy
  let policy: Policy = config.policy
  let isServed = false
  const serve = (): void => {
    // With the first call: policies of a reload are prepared before the primary process has them. It has their tiers itself.
    if (!isServed) void primary.call('serve', { ...config, tiers: undefined }).catch(() => undefined)
    isServed = true
  }
  const call = <Value>(method: string, ...args: readonly unknown[]): Promise<Value> => {
    serve()
    return primary.call(method, name, ...args)
  }
  const drop = (method: string, handle: number): void => void primary.call(method, handle).catch(() => undefined)
  const takeAbove = async (key: Key, cost: number, floor: number): Promise<Decision> => {
    serve()
    // The caller has received an error: a permit must not stay taken until its time is over.
    const onLate = ({ handle }: Crossed): void => void (handle === undefined || drop('release', handle))
    const { decision, handle } = await primary.callWith<Crossed>({ onLate }, 'take', name, key, cost, floor)
    if (handle === undefined) return decision
    return Object.assign(decision, {
      release: () => primary.call<boolean>('release', handle),
      heartbeat: () => primary.call<boolean>('heartbeat', handle),
    })
  }
  return {
    isShared: true,
    get policy() {
      return policy
    },
    take: (key, cost) => takeAbove(key, cost, 0),
    takeAbove,
    peek: (key, cost) => call<Decision>('peek', key, cost),
    async reserve(key, cost): Promise<StoredReservation> {
      serve()
      const onLate = ({ handle }: Crossed): void => void (handle === undefined || drop('cancel', handle))
      const { decision, handle } = await primary.callWith<Crossed>({ onLate }, 'reserve', name, key, cost)
      return {
        allowed: handle !== undefined,
        waitMs: handle === undefined ? decision.retryAfterMs : 0,
        decision,
        settle: (actualCost) => (handle === undefined ? decision : primary.call<Decision>('settle', handle, actualCost)),
        cancel: () => (handle === undefined ? decision : primary.call<Decision>('cancel', handle)),
        lapse: () => void (handle === undefined || drop('lapse', handle)),
      }
    },
    refund: (key, tokens) => call<Decision>('refund', key, tokens),
    penalize: (key, tokens) => call<Decision>('penalize', key, tokens),
    block: (key, forMs) => call<Decision>('block', key, forMs),
    reset: (key) => call<Decision>('reset', key),
    // The primary process has changed its own before its workers do.
    update(next) {
      policy = next
    },
    stats: () => NO_TABLE,
    storeStats: () => undefined,
    hotKeys: () => NO_HOT_KEYS,
    snapshot: () => undefined,
    close: () => void (isServed && primary.call('drop', name).catch(() => undefined)),
  }
}
