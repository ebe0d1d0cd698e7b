import { checkedWaitRequest } from '../arguments.js'
import { nameOf } from '../key.js'
import type { Key, WaitOptions } from '../limiter.js'
import type { Clock } from '../time/clock.js'
import { AbortWatch } from './abort-watch.js'
import { Alarm, alertOf } from './alarm.js'

/** How often a function is asked again which limiter a waiting key has. */
const ASKED_EACH_MS = 1_000

interface Following<Inner> {
  limiter: Inner
  controller: AbortController
  isMoved: boolean
  /** Resolved once it waits nowhere, and when it may wait again. */
  stopped: () => void
  again: Promise<void>
}

/** Waits that follow their key: when it has another limiter, they wait there, in their order. */
export class FollowingWaits<Inner> {
  private readonly limiterOf: (key: Key) => Inner
  private readonly clock: Clock
  /** Set while something waits, where a function says which limiter a key has. */
  private readonly alarm: Alarm | undefined
  private readonly asks = alertOf(() => this.askAgain())
  private readonly byName = new Map<string, { readonly key: Key; readonly waits: Set<Following<Inner>> }>()
  private readonly aborts = new AbortWatch()

  /** @param isAsked the answers of `limiterOf` may change without a call of {@link changed}. */
  constructor(limiterOf: (key: Key) => Inner, clock: Clock, isAsked: boolean) {
    this.limiterOf = limiterOf
    this.clock = clock
    // A wait hears of a failing clock from its limiter.
    if (isAsked) this.alarm = new Alarm(clock, () => undefined)
  }

  /** @param call waits at a limiter. */
  async wait<Answer>(
    key: Key,
    options: WaitOptions = {},
    call: (limiter: Inner, options: WaitOptions) => Promise<Answer>,
  ): Promise<Answer> {
    const { signal, maxWaitMs } = checkedWaitRequest(key, options)
    const limiter = this.limiterOf(key)
    if (signal?.aborted) return call(limiter, options)
    const untilMs = this.clock.nowMs() + maxWaitMs
    const one: Following<Inner> = {
      limiter,
      controller: new AbortController(),
      isMoved: false,
      stopped: () => undefined,
      again: Promise.resolve(),
    }
    const name = nameOf(key)
    const all = this.byName.get(name) ?? { key, waits: new Set() }
    if (this.alarm !== undefined && this.byName.size === 0) this.askLater()
    this.byName.set(name, all)
    all.waits.add(one)
    const unwatch = signal && this.aborts.add(signal, () => one.controller.abort(signal.reason))
    try {
      for (;;) {
        const left = one.isMoved ? { maxWait: Math.max(0, untilMs - this.clock.nowMs()) } : {}
        one.isMoved = false
        try {
          return await call(one.limiter, { ...options, ...left, signal: one.controller.signal })
        } catch (error) {
          if (!this.hasMoved(one) || signal?.aborted) throw error
        }
        one.stopped()
        await one.again
        if (signal?.aborted) throw signal.reason
        one.limiter = this.limiterOf(key)
        one.controller = new AbortController()
      }
    } finally {
      unwatch?.()
      one.stopped()
      all.waits.delete(one)
      if (all.waits.size === 0) this.byName.delete(name)
      if (this.byName.size === 0) this.alarm?.clear(this.asks)
    }
  }

  /** Keys may have other limiters from now on. */
  changed(): void {
    for (const { key, waits } of this.byName.values()) this.look(key, waits)
  }

  /** The same of one key. */
  keyChanged(key: Key): void {
    const all = this.byName.size === 0 ? undefined : this.byName.get(nameOf(key))
    if (all !== undefined) this.look(key, all.waits)
  }

  private look(key: Key, waits: ReadonlySet<Following<Inner>>): void {
    const moved = [...waits].filter((one) => !one.isMoved && this.isElsewhere(key, one))
    if (moved.length > 0) this.move(moved)
  }

  private askAgain(): void {
    this.changed()
    if (this.byName.size > 0) this.askLater()
  }

  private askLater(): void {
    this.alarm?.set(this.asks, this.alarm.inUs(ASKED_EACH_MS), 0)
  }

  private move(moved: readonly Following<Inner>[]): void {
    const goes: (() => void)[] = []
    const stops = moved.map((one) => {
      one.isMoved = true
      one.again = new Promise((resolve) => goes.push(resolve))
      return new Promise<void>((resolve) => {
        one.stopped = resolve
      })
    })
    // The latest first: of most policies only the latest booking comes back in full.
    for (const { controller } of [...moved].reverse()) controller.abort(new Error('the key has another policy'))
    void Promise.all(stops).then(() => {
      for (const go of goes) go()
    })
  }

  private hasMoved({ isMoved }: Following<Inner>): boolean {
    return isMoved
  }

  private isElsewhere(key: Key, { limiter }: Following<Inner>): boolean {
    try {
      return this.limiterOf(key) !== limiter
    } catch {
      // It hears of it when it is served.
      return false
    }
  }
}
