import type { Clock } from '../clock.js'
import type { Decision } from '../decision.js'
import { isPermit } from '../empty-permit.js'
import { isOutage, StoreError } from '../errors.js'
import { nameOf } from '../key-name.js'
import type { Key, WaitOptions } from '../limiter.js'
import { checkedWaitRequest, type WaitRequest } from '../wait-request.js'
import { AbortWatch } from '../waiting/abort-watch.js'
import type { Booked } from './fleet-verbs.js'
import { Sleepers } from './sleepers.js'

/** How often a place that may come back any time is asked for, at first and at the longest. */
const FIRST_ASK_MS = 20
const LAST_ASK_MS = 1_000
/** How often those who wait without the store look whether it is back, at first and at the longest. */
const FIRST_LOOK_MS = 100
const LAST_LOOK_MS = 5_000

/** What waiting needs of a limiter. */
export interface WaitingDesk<Answer extends Decision> {
  /** Charges `cost` at the earliest time, within `mostMs`. Rejects with `OUTAGE`. */
  book(key: Key, cost: number, mostMs: number): Promise<Booked>
  /** What the taker of a booking is told, so long after it was asked for; undefined when it came too late, and is to be booked again. */
  answer(booked: Booked, sinceMs: number): Promise<Answer | undefined>
  /** Soon, together with what others do not want. */
  giveBack(booked: Booked): void
  /** A denial. */
  refuse(decision: Decision): Answer
  /** Waits for what is decided while the store cannot be reached. */
  waitWithout(request: WaitRequest): Promise<Answer>
}

/**
 * Those who wait on a store. A waiter books when it comes, so that the store keeps the order, over the whole fleet, and all that is left
 * to do is to sleep. What cannot be booked ahead (a permit, several policies, a blocked key) is asked for again and again by the first of
 * those who stand in line for the key in this process.
 */
export class StoreWaiting<Answer extends Decision> {
  private readonly desk: WaitingDesk<Answer>
  private readonly sleepers: Sleepers
  private readonly maxWaiters: number
  /** Those who stand in line for a key, in the order of arrival. */
  private readonly lines = new Map<string, Set<symbol>>()
  private readonly aborts = new AbortWatch()
  private waiters = 0

  constructor(desk: WaitingDesk<Answer>, clock: Clock, maxWaiters: number) {
    this.desk = desk
    this.sleepers = new Sleepers(clock)
    this.maxWaiters = maxWaiters
  }

  /** {@link Limiter.wait} */
  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
    const request = checkedWaitRequest(key, options)
    request.signal?.throwIfAborted()
    const untilMs = this.sleepers.nowMs() + (this.waiters < this.maxWaiters ? request.maxWaitMs : 0)
    this.waiters++
    try {
      return await this.turn(request, untilMs)
    } catch (error) {
      if (isOutage(error)) return await this.without(request, untilMs)
      throw error
    } finally {
      this.waiters--
    }
  }

  /** Whether someone stands in line for a key. */
  isQueued(key: Key): boolean {
    return this.lines.size > 0 && this.lines.has(nameOf(key))
  }

  /** To be called when this process gave something back that counts for a key: the first in its line asks at once. */
  released(key: Key): void {
    const line = this.lines.get(nameOf(key))
    if (line !== undefined) this.wakeFirst(line)
  }

  close(): void {
    this.sleepers.close(new StoreError('CLOSED', 'this limiter was closed'))
  }

  private async turn(request: WaitRequest, untilMs: number): Promise<Answer> {
    const name = nameOf(request.key)
    if (this.lines.has(name)) return this.inLine(name, request, untilMs)
    const first = await this.tried(request, untilMs)
    return first.answer ?? this.inLine(name, request, untilMs, first.againMs)
  }

  /** What is decided without the store, or by it, should it be back before: then its whole budget is there again, and not a share. */
  private async without(request: WaitRequest, untilMs: number): Promise<Answer> {
    const given = request.signal
    given?.throwIfAborted()
    const over = new AbortController()
    const unwatch = given && this.aborts.add(given, () => over.abort(given.reason))
    const watched = { ...request, signal: over.signal }
    let isOver = false
    const local = this.desk.waitWithout({ ...watched, maxWaitMs: this.leftMs(untilMs) }).then((answer) => {
      // Both at once: a place that nobody is told of is free.
      if (isOver && isPermit(answer)) void answer.release()
      return answer
    })
    const store = this.onceBack(watched, untilMs)
    store.catch(() => undefined)
    try {
      return await Promise.race([local, store])
    } finally {
      isOver = true
      unwatch?.()
      over.abort()
    }
  }

  private async onceBack(request: WaitRequest, untilMs: number): Promise<Answer> {
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(LAST_LOOK_MS, pauseMs * 1.5)) {
      await this.sleepers.sleep(pauseMs, request.signal)
      try {
        return await this.turn(request, untilMs)
      } catch (error) {
        if (!isOutage(error)) throw error
      }
    }
  }

  private async inLine(name: string, request: WaitRequest, untilMs: number, firstAskMs = 0): Promise<Answer> {
    const line = this.lines.get(name) ?? new Set()
    const own = Symbol()
    this.lines.set(name, line.add(own))
    try {
      return await this.asking(line, own, request, untilMs, firstAskMs)
    } finally {
      const wasFirst = firstOf(line) === own
      line.delete(own)
      if (line.size === 0) this.lines.delete(name)
      else if (wasFirst) this.wakeFirst(line)
    }
  }

  /** Whoever is not the first sleeps until he is, or his time is over, and asks at once then. */
  private async asking(line: Set<symbol>, own: symbol, request: WaitRequest, untilMs: number, firstAskMs: number): Promise<Answer> {
    const { signal } = request
    let pauseMs = FIRST_ASK_MS
    let againMs = firstAskMs
    while (firstOf(line) !== own && this.leftMs(untilMs) > 0) {
      await this.sleepers.sleep(this.leftMs(untilMs), signal, own)
      againMs = 0
    }
    for (;;) {
      const sleepMs = Math.min(againMs, pauseMs, this.leftMs(untilMs))
      if (sleepMs > 0) await this.sleepers.sleep(sleepMs, signal, own)
      const { answer, againMs: next } = await this.tried(request, untilMs)
      if (answer !== undefined) return answer
      againMs = next
      pauseMs = Math.min(LAST_ASK_MS, pauseMs * 1.5)
    }
  }

  private wakeFirst(line: ReadonlySet<symbol>): void {
    const first = firstOf(line)
    if (first !== undefined) this.sleepers.wake(first)
  }

  /** An answer, or the milliseconds after which to ask again. */
  private async tried(request: WaitRequest, untilMs: number): Promise<{ readonly answer?: Answer; readonly againMs: number }> {
    const { key, cost, signal } = request
    const sentMs = this.sleepers.nowMs()
    const booking = this.desk.book(key, cost, this.leftMs(untilMs))
    const booked = await this.sleepers.unlessAborted(booking, signal, (late) => {
      if (late.allowed) this.desk.giveBack(late)
    })
    if (!booked.allowed) {
      const againMs = booked.decision.retryAfterMs
      const leftMs = this.leftMs(untilMs)
      const isFinal = againMs === Number.POSITIVE_INFINITY || leftMs <= 0 || (againMs > leftMs && booked.permit === undefined)
      return isFinal ? { answer: this.desk.refuse(booked.decision), againMs: 0 } : { againMs }
    }
    try {
      if (booked.waitUs > 0) await this.sleepers.sleep(booked.waitUs / 1000, signal)
    } catch (reason) {
      this.desk.giveBack(booked)
      throw reason
    }
    const answer = await this.desk.answer(booked, this.sleepers.nowMs() - sentMs)
    if (signal?.aborted) {
      if (answer?.allowed) this.desk.giveBack(booked)
      throw signal.reason
    }
    return answer === undefined ? { againMs: 0 } : { answer, againMs: 0 }
  }

  private leftMs(untilMs: number): number {
    return Math.max(0, untilMs - this.sleepers.nowMs())
  }
}

function firstOf(line: ReadonlySet<symbol>): symbol | undefined {
  return line.values().next().value
}
