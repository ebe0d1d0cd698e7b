import type { Clock } from '../clock.js'
import type { Decision } from '../decision.js'
import { isOutage, StoreError } from '../errors.js'
import { nameOf } from '../key-name.js'
import type { Key, WaitOptions } from '../limiter.js'
import { checkedWaitRequest } from '../wait-request.js'
import { AwaitedTimes } from './awaited-times.js'
import { BookingLimits } from './booking-limits.js'
import type { Booked } from './fleet-verbs.js'
import { QuestionsUnderway } from './questions-underway.js'
import { Sleepers } from './sleepers.js'
import type { WaitingDesk } from './waiting-desk.js'
import { type LineDenial, WaitingLine } from './waiting-line.js'
import { type Wait, WaitingMeanwhile } from './waiting-meanwhile.js'

/** How often a place that may come back any time is asked for, at first and at the longest. */
const FIRST_ASK_MS = 20
const LAST_ASK_MS = 1_000

/** What came of asking the store: one of these. */
interface Asked<Answer extends Decision> {
  readonly booked?: Booked & { readonly sentMs: number }
  /** The last word. */
  readonly answer?: Answer
  readonly denied?: LineDenial
}

/**
 * Those who wait on a store. A waiter books as soon as its tokens are near enough ({@link BookingLimits}), so that the store keeps the order,
 * over the whole fleet, and all that is left to do is to sleep. Until then it stands in the line of its key in this process, as does whoever
 * waits for what cannot be booked ahead (a permit, several policies, a blocked key); the first of a line asks again and again.
 */
export class StoreWaiting<Answer extends Decision> {
  private readonly desk: WaitingDesk<Answer>
  private readonly sleepers: Sleepers
  private readonly maxWaiters: number
  /** Those who stand in line for a key, in the order of arrival. */
  private readonly lines = new Map<string, WaitingLine>()
  private readonly limits: BookingLimits
  private readonly underway = new QuestionsUnderway()
  /** The earliest times at which those who have booked may be served, and the times until which they sleep. */
  private readonly awaited = new AwaitedTimes()
  private readonly slept = new AwaitedTimes()
  private arrivals = 0
  private readonly meanwhile: WaitingMeanwhile<Answer>
  private waiters = 0

  constructor(desk: WaitingDesk<Answer>, clock: Clock, maxWaiters: number) {
    this.desk = desk
    this.sleepers = new Sleepers(clock)
    this.meanwhile = new WaitingMeanwhile(desk, this.sleepers, (wait) => this.turn(wait))
    this.limits = new BookingLimits(() => desk.policyNow())
    this.maxWaiters = maxWaiters
  }

  /** {@link Limiter.wait} */
  async wait(key: Key, options: WaitOptions = {}): Promise<Answer> {
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

  private async turn(wait: Wait): Promise<Answer> {
    for (;;) {
      const { booked, answer } = await this.booking(wait)
      const final = booked === undefined ? answer : await this.kept(booked, wait)
      if (final !== undefined) return final
    }
  }

  /** What is booked, or the last word. */
  private async booking(wait: Wait): Promise<Asked<Answer>> {
    const { request, untilMs } = wait
    const name = nameOf(request.key)
    const line = this.lines.get(name)
    if (line === undefined) {
      if (!this.underway.mayFollow(name, request.cost)) return this.inLine(wait)
      const asked = await this.askedWithoutLine(name, wait)
      if (asked.denied !== undefined) return this.inLine(wait, asked.denied)
      if (asked.booked === undefined || !this.overtakes(name, wait)) return asked
      this.desk.giveBack(asked.booked)
      return this.inLine(wait)
    }
    if (!this.isTooLate(line, request.cost, untilMs)) return this.inLine(wait)
    // As things stand its time is over before its turn comes: it is told so now.
    return { answer: await this.desk.deny(request.key, request.cost) }
  }

  /** Of questions asked together one may pass after others were denied, as time goes by in the store. */
  private overtakes(name: string, { arrival }: Wait): boolean {
    const first = this.lines.get(name)?.first
    return first !== undefined && first.arrival < arrival
  }

  private async askedWithoutLine(name: string, wait: Wait): Promise<Asked<Answer>> {
    this.underway.begin(name, wait.request.cost)
    try {
      return await this.asked(wait)
    } finally {
      this.underway.end(name)
      // After those who were denied have joined it.
      if (!this.underway.has(name)) setImmediate(() => this.released(wait.request.key))
    }
  }

  private async inLine(wait: Wait, denied?: LineDenial): Promise<Asked<Answer>> {
    const { request, arrival } = wait
    const name = nameOf(request.key)
    const line = this.lines.get(name) ?? new WaitingLine()
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

  /** Whoever is not the first sleeps until he is, or his time is over, and asks at once then. */
  private async asking(line: WaitingLine, own: symbol, wait: Wait, first?: LineDenial): Promise<Asked<Answer>> {
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

  /** Whether whoever comes last is known to come too late. */
  private isTooLate({ denied, tokens }: WaitingLine, cost: number, untilMs: number): boolean {
    return denied !== undefined && untilMs < Number.POSITIVE_INFINITY && this.limits.allPassedMs(denied.atMs, tokens + cost) > untilMs
  }

  private wakeFirst(line: WaitingLine): void {
    if (line.first !== undefined) this.sleepers.wake(line.first.own)
  }

  private async asked({ request, untilMs }: Wait): Promise<Asked<Answer>> {
    const { key, cost, signal } = request
    const sentMs = this.sleepers.nowMs()
    const leftMs = this.leftMs(untilMs)
    const booking = this.desk.book(key, cost, this.limits.mostMs(key, leftMs, sentMs))
    const booked = await this.sleepers.unlessAborted(booking, signal, (late) => {
      if (late.allowed) this.giveBack(late, sentMs)
    })
    if (booked.allowed) {
      // Something came back in front of others who have booked: it is not for those who came after them.
      const latestMs = this.awaited.latestMs(nameOf(key))
      if (this.sleepers.nowMs() + booked.waitUs / 1000 >= latestMs || untilMs < latestMs) return { booked: { ...booked, sentMs } }
      this.desk.giveBack(booked)
      return { denied: { atMs: latestMs } }
    }
    const againMs = booked.decision.retryAfterMs
    const stillMs = this.leftMs(untilMs)
    const isFinal = againMs === Number.POSITIVE_INFINITY || stillMs <= 0 || (againMs > stillMs && booked.permit === undefined)
    if (isFinal) return { answer: this.desk.refuse(booked.decision) }
    return { denied: { atMs: this.sleepers.nowMs() + againMs } }
  }

  /** Sleeps until what was booked may be spent; nothing when it came too late for that, and is to be booked anew. */
  private async kept(booked: Booked & { readonly sentMs: number }, { request, untilMs }: Wait): Promise<Answer | undefined> {
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
    const answer = await this.desk.answer(booked, this.sleepers.nowMs() - booked.sentMs)
    if (signal?.aborted) {
      if (answer?.allowed) this.giveBack(booked, booked.sentMs)
      throw signal.reason
    }
    return answer
  }

  /**
   * When to wake for a booking: not before those who booked earlier, as answers take their time, not all the same, and the last of those who are
   * booked for one moment would be served first.
   */
  private dueUs(name: string, { waitUs }: Booked, untilMs: number): number {
    const ownUs = this.sleepers.inUs(waitUs / 1000)
    const latestMs = this.slept.latestMs(name)
    return waitUs > 0 && latestMs <= untilMs ? Math.max(ownUs, Math.round(latestMs * 1000)) : ownUs
  }

  private giveBack(booked: Booked, sentMs: number): void {
    this.desk.giveBack(booked)
    this.limits.gaveUp(booked.key, this.sleepers.nowMs(), sentMs + booked.waitUs / 1000)
  }

  private leftMs(untilMs: number): number {
    return Math.max(0, untilMs - this.sleepers.nowMs())
  }
}
