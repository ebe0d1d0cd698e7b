import type { Clock } from '../../clock.js'
import type { Decision } from '../../decision.js'
import { isOutage, StoreError } from '../../errors.js'
import { nameOf } from '../../key.js'
import type { Key, WaitOptions } from '../../limiter.js'
import { holdsPermits } from '../../permit.js'
import { checkedWaitRequest } from '../../wait-options.js'
import type { Booked } from '../backend.js'
import { BookingLimits } from './booking-limits.js'
import { OutageWaiting, type Wait } from './outage-waiting.js'
import type { Reservations } from './reservations.js'
import { Sleepers } from './sleepers.js'
import { PendingRequests, type QueueDenial, ReservedTimes, WaitingQueue } from './waiting-queue.js'

/** How often to ask for a permit that may be released any time: the first and the longest pause. */
const FIRST_ASK_MS = 20
const LAST_ASK_MS = 1_000

/** The result of asking the backend: one of these. */
interface Asked {
  readonly booked?: Booked & { readonly sentMs: number }
  /** The final answer. */
  readonly answer?: Decision
  readonly denied?: QueueDenial
}

/**
 * `wait` on a backend. A waiter reserves its tokens as soon as they are near enough ({@link BookingLimits}) and then sleeps, so that the
 * backend keeps the order over the whole fleet. Until then it is in the queue of its key in this process. So is a waiter for what cannot be
 * reserved ahead: a permit, `allOf`, a banned key. The first of a queue asks again and again.
 */
export class SharedWaiting {
  private readonly reservations: Reservations
  private readonly sleepers: Sleepers
  private readonly maxWaiters: number
  /** The queue of each key, in the order of arrival. */
  private readonly lines = new Map<string, WaitingQueue>()
  private readonly limits: BookingLimits
  private readonly underway = new PendingRequests()
  /** The earliest times at which reservations may be redeemed, and the times until which their waiters sleep. */
  private readonly awaited = new ReservedTimes()
  private readonly slept = new ReservedTimes()
  private arrivals = 0
  private readonly meanwhile: OutageWaiting
  private waiters = 0

  constructor(reservations: Reservations, clock: Clock, maxWaiters: number) {
    this.reservations = reservations
    this.sleepers = new Sleepers(clock)
    this.meanwhile = new OutageWaiting(reservations, this.sleepers, (wait) => this.turn(wait))
    this.limits = new BookingLimits(() => reservations.policy)
    this.maxWaiters = maxWaiters
  }

  /** {@link Limiter.wait} */
  async wait(key: Key, options: WaitOptions = {}): Promise<Decision> {
    const request = checkedWaitRequest(key, options)
    request.signal?.throwIfAborted()
    const untilMs = this.sleepers.nowMs() + (this.waiters < this.maxWaiters ? request.maxWaitMs : 0)
    const wait = { request, untilMs, arrival: this.arrivals++ }
    this.waiters++
    try {
      return await this.turn(wait)
    } catch (error) {
      if (isOutage(error)) return await this.meanwhile.wait(wait)
      throw error
    } finally {
      this.waiters--
    }
  }

  /** Whether the key has a queue. */
  isQueued(key: Key): boolean {
    return this.lines.size > 0 && this.lines.has(nameOf(key))
  }

  /** Call it when this process gave tokens of a key back: the first of its queue asks at once. */
  released(key: Key): void {
    const line = this.lines.get(nameOf(key))
    if (line !== undefined) this.wakeFirst(line)
  }

  close(): void {
    this.sleepers.close(new StoreError('CLOSED', 'this limiter was closed'))
  }

  private async turn(wait: Wait): Promise<Decision> {
    for (;;) {
      const { booked, answer } = await this.booking(wait)
      const final = booked === undefined ? answer : await this.kept(booked, wait)
      if (final !== undefined) return final
    }
  }

  /** A reservation, or the final answer. */
  private async booking(wait: Wait): Promise<Asked> {
    const { request, untilMs } = wait
    const name = nameOf(request.key)
    const line = this.lines.get(name)
    if (line === undefined) {
      if (!this.underway.mayFollow(name, request.cost)) return this.inLine(wait)
      const asked = await this.askedWithoutLine(name, wait)
      if (asked.denied !== undefined) return this.inLine(wait, asked.denied)
      if (asked.booked === undefined || !this.overtakes(name, wait)) return asked
      this.discard(asked.booked)
      return this.inLine(wait)
    }
    if (!this.isTooLate(line, request.cost, untilMs)) return this.inLine(wait)
    // Its time is known to be over before its turn comes.
    return { answer: await this.reservations.deny(request.key, request.cost) }
  }

  /** Of requests sent together one may pass after others were denied, as time goes by at the backend. */
  private overtakes(name: string, { arrival }: Wait): boolean {
    const first = this.lines.get(name)?.first
    return first !== undefined && first.arrival < arrival
  }

  private async askedWithoutLine(name: string, wait: Wait): Promise<Asked> {
    this.underway.begin(name, wait.request.cost)
    try {
      return await this.asked(wait)
    } finally {
      this.underway.end(name)
      // After waiters that were denied have joined the queue.
      if (!this.underway.has(name)) setImmediate(() => this.released(wait.request.key))
    }
  }

  private async inLine(wait: Wait, denied?: QueueDenial): Promise<Asked> {
    const { request, arrival } = wait
    const name = nameOf(request.key)
    const line = this.lines.get(name) ?? new WaitingQueue()
    this.lines.set(name, line)
    const own = Symbol()
    const place = line.add({ own, request, arrival })
    try {
      return await this.asking(line, own, wait, denied)
    } finally {
      const wasFirst = line.first === place.item
      line.remove(place)
      if (line.first === undefined) this.lines.delete(name)
      else if (wasFirst) this.wakeFirst(line)
    }
  }

  /** Sleeps until it is first in the queue or its time is over, then asks at once. */
  private async asking(line: WaitingQueue, own: symbol, wait: Wait, first?: QueueDenial): Promise<Asked> {
    const { request, untilMs } = wait
    const { key, signal } = request
    let pauseMs = FIRST_ASK_MS
    let denied = first
    while ((line.first?.own !== own || this.underway.has(nameOf(key))) && this.leftMs(untilMs) > 0) {
      await this.sleepers.sleep(this.leftMs(untilMs), signal, own)
      denied = undefined
    }
    for (;;) {
      if (line.first?.own === own) line.denied = denied
      const againMs = denied === undefined ? 0 : this.limits.askAgainMs(key, denied.atMs, this.sleepers.nowMs())
      const sleepMs = Math.min(againMs, pauseMs, this.leftMs(untilMs))
      if (sleepMs > 0) await this.sleepers.sleep(sleepMs, signal, own)
      const asked = await this.asked(wait)
      if (asked.denied === undefined) return asked
      denied = asked.denied
      pauseMs = Math.min(LAST_ASK_MS, pauseMs * 1.5)
    }
  }

  /** Whether a waiter at the end of the queue is known to come too late. */
  private isTooLate({ denied, tokens }: WaitingQueue, cost: number, untilMs: number): boolean {
    return denied !== undefined && untilMs < Number.POSITIVE_INFINITY && this.limits.allPassedMs(denied.atMs, tokens + cost) > untilMs
  }

  private wakeFirst(line: WaitingQueue): void {
    if (line.first !== undefined) this.sleepers.wake(line.first.own)
  }

  private async asked({ request, untilMs }: Wait): Promise<Asked> {
    const { key, cost, signal } = request
    const sentMs = this.sleepers.nowMs()
    const leftMs = this.leftMs(untilMs)
    const booking = this.reservations.reserve(key, cost, this.limits.mostMs(key, leftMs, sentMs))
    const booked = await this.sleepers.unlessAborted(booking, signal, (late) => {
      if (late.allowed) this.giveBack(late, sentMs)
    })
    if (booked.allowed) {
      // Tokens were returned ahead of other bookings: they are not for later arrivals.
      const latestMs = this.awaited.latestMs(nameOf(key))
      if (this.sleepers.nowMs() + booked.waitUs / 1000 >= latestMs || untilMs < latestMs) return { booked: { ...booked, sentMs } }
      this.discard(booked)
      return { denied: { atMs: latestMs } }
    }
    const againMs = booked.decision.retryAfterMs
    const stillMs = this.leftMs(untilMs)
    const isFinal = againMs === Number.POSITIVE_INFINITY || stillMs <= 0 || (againMs > stillMs && !holdsPermits(this.reservations.policy))
    if (isFinal) return { answer: this.reservations.refuse(booked.decision) }
    return { denied: { atMs: this.sleepers.nowMs() + againMs } }
  }

  /** Sleeps until the reserved tokens may be spent; undefined when it woke too late and has to reserve anew. */
  private async kept(booked: Booked & { readonly sentMs: number }, { request, untilMs }: Wait): Promise<Decision | undefined> {
    const { signal } = request
    const name = nameOf(request.key)
    const served = this.awaited.add(name, booked.sentMs + booked.waitUs / 1000)
    const dueUs = this.dueUs(name, booked, untilMs)
    const woken = this.slept.add(name, dueUs / 1000)
    try {
      if (booked.waitUs > 0) await this.sleepers.sleepUntil(dueUs, signal)
    } catch (reason) {
      this.giveBack(booked, booked.sentMs)
      throw reason
    } finally {
      served()
      woken()
    }
    const answer = await this.reservations.redeem(booked, this.sleepers.nowMs() - booked.sentMs)
    if (signal?.aborted) {
      if (answer?.allowed) this.giveBack(booked, booked.sentMs)
      throw signal.reason
    }
    return answer
  }

  /**
   * When to wake for a reservation: not before earlier ones. Answers take unequal times, so of reservations for one moment the last would be
   * redeemed first.
   */
  private dueUs(name: string, { waitUs }: Booked, untilMs: number): number {
    const ownUs = this.sleepers.inUs(waitUs / 1000)
    const latestMs = this.slept.latestMs(name)
    return waitUs > 0 && latestMs <= untilMs ? Math.max(ownUs, Math.round(latestMs * 1000)) : ownUs
  }

  private giveBack(booked: Booked, sentMs: number): void {
    this.discard(booked)
    this.limits.gaveUp(booked.key, this.sleepers.nowMs(), sentMs + booked.waitUs / 1000)
  }

  private discard(booked: Booked): void {
    this.reservations.discard(booked, () => this.released(booked.key))
  }

  private leftMs(untilMs: number): number {
    return Math.max(0, untilMs - this.sleepers.nowMs())
  }
}
