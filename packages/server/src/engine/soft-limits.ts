import { isDeepStrictEqual } from 'node:util'
import { type Clock, type Decision, type Key, type Policy, preciseClock, watchSoftLimits } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import type { Awaitable } from './awaitable.js'
import type { LimiterMaking, Storage } from './engine-limiter.js'

/** A key has reached a soft limit: once a window, over all processes. */
export interface SoftLimitReached {
  readonly policy: string
  /** Of an all-of: which part. */
  readonly part: string | undefined
  readonly key: string
  readonly threshold: string
  /** Tokens, with those that are held. */
  readonly used: number
  /** Tokens that may be spent at once. */
  readonly limit: number
}

/** Looks at the answers of a policy: see `watchSoftLimits` of the library. */
export type SoftWatch = ReturnType<typeof watchSoftLimits>

interface Once {
  readonly policy: Policy
  take(key: string): Awaitable<Decision>
  close(): void
}

/** The soft limits of all policies, and the limiters that say who announces one. They outlive a reload, so that nothing is announced again. */
export class SoftLimits {
  readonly #storage: Storage
  readonly #making: LimiterMaking
  readonly #onSoft: (reached: SoftLimitReached) => void
  readonly #clock: Clock
  readonly #once = new Map<string, Once>()

  constructor(storage: Storage, making: LimiterMaking, onSoft: (reached: SoftLimitReached) => void) {
    this.#storage = storage
    this.#making = { ...making, hotKeys: 0, isExact: true }
    this.#onSoft = onSoft
    this.#clock = making.clock ?? preciseClock()
  }

  /** @param count called where this process announces. */
  watch({ policy, soft }: PolicyConfig, count: (reached: SoftLimitReached) => void): SoftWatch | undefined {
    if (soft === undefined) return undefined
    return watchSoftLimits(policy, {
      clock: this.#clock,
      soft: Object.fromEntries(soft),
      onSoft: ({ policy: name, key, threshold, used, limit }) => {
        const reached = { policy: policy.name, part: policy.policies && name, key, threshold, used, limit }
        count(reached)
        this.#onSoft(reached)
      },
      make: (once) => ({ take: (key) => this.announce(once, key), close: () => undefined }),
    })
  }

  /** Whether this call is the one that announces: allowed once a window. */
  announce(policy: Policy, key: Key): Awaitable<Decision> {
    return this.#limiterOf(policy).take(key as string)
  }

  close(): void {
    for (const each of this.#once.values()) each.close()
  }

  #limiterOf(policy: Policy): Once {
    const known = this.#once.get(policy.name)
    if (known !== undefined && isDeepStrictEqual(known.policy, policy)) return known
    known?.close()
    const made = this.#made(policy)
    this.#once.set(policy.name, made)
    return made
  }

  #made(policy: Policy): Once {
    const { announce } = this.#storage
    if (announce !== undefined) return { policy, take: (key) => announce(policy, key), close: () => undefined }
    const limiter = this.#storage.limiter({ policy, maxKeys: undefined, onFull: 'evict' }, this.#making)
    return { policy, take: (key) => limiter.take(key, 1), close: () => limiter.close() }
  }
}
