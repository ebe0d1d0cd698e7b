import { checkedWaitRequest } from '../../arguments.js'
import type { Decision } from '../../decision/decision.js'
import { holdsPermits } from '../../decision/permit.js'
import { closedError, isOutage } from '../../errors.js'
import { nameOf } from '../../key.js'
import type { Key, WaitOptions } from '../../limiter.js'
import { isRate } from '../../policy/policy.js'
import type { Clock } from '../../time/clock.js'
import { BookingLimits, isBookedAhead, isClosedAhead } from '../../waiting/booking-limits.js'
import type { Reserved } from '../backend.js'
import { KeyLooks } from './key-looks.js'
import { OutageWaiting } from './outage-waiting.js'
import type { QueueAhead, Reservations } from './reservations.js'
import { isStanding, type Newcomer, type ReservedWait, ReservedWaits, type SentReservation, SLACK_MS } from './reserved-waits.js'
import { Sleepers } from './sleepers.js'
import { PendingRequests, type Wait, type Waited, WaitingQueue } from './waiting-queue.js'

/** Waiters of one key that move up together: each costs two calls. */
const MOST_MOVED = 64
/** The same of all keys, when the policy changes, which is rare. */
const MOST_MOVED_BY_CHANGE = 1_000

/** How often to ask for a permit that may be released any time: the first and the longest pause. */
const FIRST_ASK_MS = 20
const LAST_ASK_MS = 1_000

/** The result of one request to the backend: one of these. */
interface Attempt {
  readonly reserved?: SentReservation
  /** The final answer. */
  readonly answer?: Decision
  /** Denied until this reading. */
  readonly deniedUntilMs?: number
}

/**
 * `wait` on a backend. A waiter reserves its tokens as soon as they are near enough ({@link BookingLimits}) and then sleeps, so that the
 * backend keeps the order over the whole fleet. Until then it is in the queue of its key in this process. So is a waiter for what cannot be
 * reserved ahead: a permit, `allOf`, a banned key. The first of a queue asks again and again.
 */
export class SharedWaiting {
  private readonly reservations: Reservations
  private readonly sleepers: Sleepers
  private readonly asleep: ReservedWaits
  private readonly maxWaiting: number
  /** The queue of each key, in the order of arrival. */
  private readonly queues = new Map<string, WaitingQueue>()
  private readonly limits: BookingLimits
  private readonly underway = new PendingRequests()
  /** The last waiter of each key that sleeps until its reservation, or redeems it. */
  private readonly redeeming = new Map<string, Promise<unknown>>()
  private readonly looks: KeyLooks
  /** Reservations of waiters that gave up before others, by key. */
  private readonly abandoned = new Map<string, Reserved[]>()
  private arrivals = 0
  private readonly meanwhile: OutageWaiting
  private waiters = 0

  constructor(reservations: Reservations, clock: Clock, maxWaiting: number) {
    this.reservations = reservations
    this.sleepers = new Sleepers(clock)
    this.asleep = new ReservedWaits(this.sleepers, () => reservations.policy)
    this.looks = new KeyLooks(
      this.sleepers,
      (name) => this.asleep.latest(name)?.dueMs,
      (name) => this.look(name),
    )
    this.meanwhile = new OutageWaiting(reservations, this.sleepers, (wait) => this.turn(wait))
    this.limits = new BookingLimits(() => (isBookedAhead(reservations.policy) ? reservations.policy : undefined))
    this.maxWaiting = maxWaiting
  }

  /** {@link Limiter.wait}. @param asksOn whatever the backend says of when it would pass: a hold may be closed any time. */
  async wait(key: Key, options: WaitOptions = {}, asksOn = false): Promise<Waited> {
    const request = checkedWaitRequest(key, options)
    request.signal?.throwIfAborted()
    const untilMs = this.sleepers.nowMs() + (this.waiters < this.maxWaiting ? request.maxWaitMs : 0)
    const wait = { request, untilMs, arrival: this.arrivals++, asksOn }
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
    return this.queues.size > 0 && this.queues.has(nameOf(key))
  }

  /** The denial of a take that may not overtake the queue. */
  deny(key: Key, cost: number): Promise<Decision> {
    return this.reservations.deny(key, cost, this.ahead(key))
  }

  /** The same of a reservation. */
  denyReservation(operation: Pick<Reserved, 'key' | 'cost' | 'id'>): Promise<Reserved> {
    return this.reservations.denyReservation(operation, this.ahead(operation.key))
  }

  /** What its queue has before whoever comes now; undefined without one. */
  private ahead(key: Key): QueueAhead | undefined {
    const queue = this.isQueued(key) ? this.queues.get(nameOf(key)) : undefined
    return queue && { tokens: queue.tokens, nextMs: LAST_ASK_MS, lastMs: this.leftMs(queue.untilMs) }
  }

  /**
   * Call it when this process gave tokens of a key back: the first of its queue asks at once, and those that have reservations reserve anew
   * where that is sooner.
   *
   * @param freeMs how long a newcomer would have to wait for one token after it, if that is known.
   */
  released(key: Key, freeMs?: number): void {
    const name = nameOf(key)
    if (freeMs !== undefined && this.asleep.isLate(name, freeMs, 1)) this.lift(name)
    this.sleepers.wake(this.queues.get(name)?.first)
  }

  /** {@link Waiting.gift}, for those that sleep until their reservations. */
  gift(key: Key, tokens: number): number {
    if (!isClosedAhead(this.reservations.policy)) return tokens
    let left = tokens
    for (const own of this.asleep.standing(nameOf(key))) {
      if (own.reserved.cost > left) break
      own.isGiven = true
      left -= own.reserved.cost
      this.sleepers.wake(own.wait)
    }
    return left
  }

  /**
   * Call it before a reset of the key, and the result when it is done: nothing that was reserved before it is charged any more. Those that
   * slept reserve anew.
   */
  resetting(key: Key): () => void {
    const name = nameOf(key)
    const slept = this.asleep.standing(name)
    return () => {
      const lifted = slept.filter(isStanding)
      this.lose(name, lifted)
      this.asleep.wake(lifted)
    }
  }

  /** Call it before the numbers of the policy change: what is reserved has to be given back under the old ones, or it stays charged. */
  changing(): void {
    const { policy } = this.reservations
    if (!isBookedAhead(policy)) return
    let left = MOST_MOVED_BY_CHANGE
    for (const name of this.asleep.names) {
      const lifted = this.lifted(name, Math.max(MOST_MOVED, left))
      left -= lifted.length
      const newestFirst = [...lifted].reverse()
      const back = newestFirst.map(({ reserved }) => this.reservations.discardNow(reserved))
      void Promise.allSettled(back).then(() => this.asleep.wake(lifted))
    }
  }

  /** Call it when the numbers of the policy have changed. */
  changed(): void {
    for (const name of isRate(this.reservations.policy) ? this.asleep.names : []) this.lift(name)
    for (const { first } of this.queues.values()) this.sleepers.wake(first)
  }

  close(): void {
    this.sleepers.close(closedError())
  }

  private async turn(wait: Wait): Promise<Waited> {
    for (;;) {
      const { reserved, answer } = await this.booking(wait)
      const waited = reserved === undefined ? answer && { decision: answer } : await this.inOrder(reserved, wait)
      if (waited !== undefined) return waited
    }
  }

  /** A reservation, or the final answer. */
  private async booking(wait: Wait): Promise<Attempt> {
    const { request, untilMs } = wait
    const name = nameOf(request.key)
    const queue = this.queues.get(name)
    if (queue === undefined) {
      if (!this.underway.mayFollow(name, request.cost)) return this.enqueued(wait)
      const attempt = await this.attemptWithoutQueue(name, wait)
      if (attempt.deniedUntilMs !== undefined) return this.enqueued(wait, attempt.deniedUntilMs)
      // Of requests sent together one may pass after others were denied, as time goes by at the backend.
      if (attempt.reserved === undefined || !this.queues.get(name)?.isBehind(wait.arrival)) return attempt
      this.discard(attempt.reserved)
      return this.enqueued(wait)
    }
    if (!this.isTooLate(queue, request.cost, untilMs)) return this.enqueued(wait)
    // Its time is known to be over before its turn comes.
    return { answer: await this.deny(request.key, request.cost) }
  }

  private async attemptWithoutQueue(name: string, wait: Wait): Promise<Attempt> {
    this.underway.begin(name, wait.request.cost)
    try {
      return await this.attempt(wait)
    } finally {
      this.underway.end(name)
      // After waiters that were denied have joined the queue.
      if (!this.underway.has(name)) setImmediate(() => this.released(wait.request.key))
    }
  }

  private async enqueued(wait: Wait, deniedUntilMs?: number): Promise<Attempt> {
    const name = nameOf(wait.request.key)
    const queue = this.queues.get(name) ?? new WaitingQueue()
    this.queues.set(name, queue)
    const place = queue.add(wait)
    try {
      return await this.asking(queue, wait, deniedUntilMs)
    } finally {
      const wasFirst = queue.first === wait
      queue.remove(place)
      if (queue.first === undefined) this.queues.delete(name)
      else if (wasFirst) this.sleepers.wake(queue.first)
    }
  }

  /** Sleeps until it is first in the queue or its time is over, then asks at once. */
  private async asking(queue: WaitingQueue, wait: Wait, first?: number): Promise<Attempt> {
    const { request, arrival, untilMs } = wait
    const { key, signal } = request
    let pauseMs = FIRST_ASK_MS
    let deniedUntilMs = first
    for (;;) {
      // An earlier one may come back, which had reserved and has to again.
      while ((queue.isBehind(arrival) || this.underway.has(nameOf(key))) && this.leftMs(untilMs) > 0) {
        await this.sleepers.sleep(this.leftMs(untilMs), signal, wait)
        deniedUntilMs = undefined
      }
      if (!queue.isBehind(arrival)) queue.deniedUntilMs = deniedUntilMs
      const againMs = deniedUntilMs === undefined ? 0 : this.askAgainMs(key, deniedUntilMs)
      const sleepMs = Math.min(againMs, pauseMs, this.leftMs(untilMs))
      if (sleepMs > 0) await this.sleepers.sleep(sleepMs, signal, wait)
      if (queue.isBehind(arrival) && this.leftMs(untilMs) > 0) continue
      const { returns } = queue
      const attempt = await this.attempt(wait)
      if (attempt.reserved !== undefined && queue.isBehind(arrival, returns) && this.leftMs(untilMs) > 0) {
        this.discard(attempt.reserved)
        deniedUntilMs = undefined
        continue
      }
      if (attempt.deniedUntilMs === undefined) return attempt
      deniedUntilMs = attempt.deniedUntilMs
      pauseMs = Math.min(LAST_ASK_MS, pauseMs * 1.5)
    }
  }

  /** Whether a waiter at the end of the queue is known to come too late. */
  private isTooLate({ deniedUntilMs, tokens }: WaitingQueue, cost: number, untilMs: number): boolean {
    return deniedUntilMs !== undefined && untilMs < Number.POSITIVE_INFINITY && this.allPassedMs(deniedUntilMs, tokens + cost) > untilMs
  }

  /** Milliseconds until a denied waiter asks again: until its tokens can be reserved, otherwise until they can be spent. */
  private askAgainMs(key: Key, deniedUntilMs: number): number {
    const nowMs = this.sleepers.nowMs()
    const bookableUs = this.limits.bookableUs(key, deniedUntilMs * 1000, nowMs * 1000)
    return Math.max(0, (bookableUs === undefined ? deniedUntilMs : bookableUs / 1000) - nowMs)
  }

  /** The earliest reading at which `tokens` can all have passed, the first of them when the denial ends: after a ban, a whole burst at once. */
  private allPassedMs(deniedUntilMs: number, tokens: number): number {
    const atOnce = Math.min(tokens, this.reservations.policy.burst)
    return (this.limits.allPassedUs(deniedUntilMs * 1000, atOnce, tokens) ?? Number.NEGATIVE_INFINITY) / 1000
  }

  private async attempt({ request, untilMs, asksOn }: Wait): Promise<Attempt> {
    const { key, cost, signal } = request
    // Of most policies nothing comes back once another reservation came after.
    const freeing = this.reservations.freeing(key)
    if (freeing !== undefined) await Promise.race([freeing, this.sleepers.sleep(this.reservations.timeoutMs, signal)])
    const { count } = this.asleep
    const sentMs = this.sleepers.nowMs()
    const leftMs = this.leftMs(untilMs)
    const booking = this.reservations.reserve(key, cost, this.limits.mostMs(key, leftMs, sentMs * 1000))
    const reserved = await this.sleepers.unlessAborted(booking, signal, (late) => {
      if (late.allowed) this.giveBack(late, sentMs)
    })
    if (reserved.allowed) {
      const name = nameOf(key)
      const freeMs = reserved.waitUs / 1000
      const isSooner = (): boolean => this.sleepers.nowMs() + freeMs < this.asleep.allPassedMs(name)
      // What is charged for now may be of another account than what they have reserved, a region's.
      if (freeMs > 0 && isSooner() && isRate(this.reservations.policy)) this.heard(name, count, { sentMs, freeMs, cost })
      const latestMs = this.asleep.allPassedMs(name)
      if (!isSooner() || untilMs < latestMs) return { reserved: { ...reserved, sentMs } }
      // Tokens were returned ahead of other bookings: they are not for later arrivals.
      this.discard(reserved)
      return { deniedUntilMs: latestMs }
    }
    const againMs = reserved.decision.retryAfterMs
    const stillMs = this.leftMs(untilMs)
    const isFinal =
      againMs === Number.POSITIVE_INFINITY || stillMs <= 0 || (againMs > stillMs && !asksOn && !holdsPermits(this.reservations.policy))
    if (isFinal) return { answer: this.reservations.refuse(reserved.decision) }
    return { deniedUntilMs: this.sleepers.nowMs() + againMs }
  }

  /**
   * {@link onceDue}, not before earlier waiters of the key that have their reservations: a later one may need no further answer, or its answer
   * may come with theirs.
   */
  private async inOrder(reserved: SentReservation, wait: Wait): Promise<Waited | undefined> {
    const name = nameOf(reserved.key)
    const before = this.redeeming.get(name)
    if (before === undefined && reserved.waitUs === 0) return this.onceDue(reserved, wait)
    // One whose time ends before theirs was let past them.
    const follows = before !== undefined && this.asleep.allPassedMs(name) <= wait.untilMs
    const due = this.onceDue(reserved, wait)
    const redeeming = follows ? after(before, due) : due
    this.redeeming.set(name, redeeming)
    try {
      return await redeeming
    } finally {
      if (this.redeeming.get(name) === redeeming) this.redeeming.delete(name)
    }
  }

  /** Sleeps until the reserved tokens may be spent; undefined when it woke too late and has to reserve again. */
  private async onceDue(reserved: SentReservation, wait: Wait): Promise<Waited | undefined> {
    const { signal } = wait.request
    const name = nameOf(reserved.key)
    const own = this.asleep.add(wait, reserved)
    try {
      this.looks.begin(name)
      await this.asleep.sleep(own)
    } catch (reason) {
      if (!own.isLifted) this.abandon(own)
      throw reason
    } finally {
      this.asleep.remove(own)
      if (!this.asleep.has(name)) this.looks.end(name)
    }
    if (own.isLifted) return undefined
    const decision = await this.reservations.redeem(reserved, this.sleepers.nowMs() - reserved.sentMs)
    if (signal?.aborted) {
      if (decision?.allowed) this.giveBack(reserved, reserved.sentMs)
      throw signal.reason
    }
    if (!own.isGiven || !decision?.allowed) return decision && { decision, reserved }
    // It goes without them: nothing of them comes back once more.
    this.discard(reserved)
    return { decision }
  }

  /**
   * Lets the sleepers of a key reserve anew where a newcomer would pass before the first of them: then another process has reset it, or given back more than
   * they had reserved. They give nothing back: after a reset that would be of others. Of a rate they go sooner by what it has given back otherwise.
   */
  private async look(name: string): Promise<void> {
    const [first] = this.asleep.standing(name)
    if (first === undefined) return
    const { key, cost } = first.reserved
    const { count } = this.asleep
    const sentMs = this.sleepers.nowMs()
    this.heard(name, count, { sentMs, cost, freeMs: await this.reservations.untilFreeMs(key, cost) }, first)
  }

  /** @param count how many had reserved when it was sent, and who was the first. */
  private heard(name: string, count: number, newcomer: Newcomer, first?: ReservedWait): void {
    const all = this.asleep.standing(name, count)
    if (this.asleep.isBefore(first ?? all[0], newcomer)) this.asleep.wake(this.lifted(name, Number.POSITIVE_INFINITY))
    else if (isRate(this.reservations.policy)) this.asleep.moveSooner(all, newcomer)
  }

  /** A waiter with a reservation gave up. Before others its tokens come back only together with theirs. */
  private abandon(own: ReservedWait): void {
    const { reserved, dueMs } = own
    const { key } = reserved
    const behind = this.asleep.countBehind(own)
    this.limits.gaveUp(key, this.sleepers.nowMs() * 1000, dueMs * 1000)
    if (behind === 0 || behind > MOST_MOVED || !isRate(this.reservations.policy)) {
      this.discard(reserved)
      return
    }
    const name = nameOf(key)
    const waiting = this.abandoned.get(name)
    if (waiting !== undefined) {
      waiting.push(reserved)
      return
    }
    this.abandoned.set(name, [reserved])
    void this.moveUp(name, key)
  }

  /** Lets those behind waiters that gave up reserve anew, unless another process has reserved behind them: then they keep what they have. */
  private async moveUp(name: string, key: Key): Promise<void> {
    try {
      const cost = this.asleep.latest(name)?.reserved.cost ?? 1
      const freeMs = await this.reservations.untilFreeMs(key, cost)
      const { dueMs } = this.asleep.latest(name) ?? { dueMs: Number.NEGATIVE_INFINITY }
      if (freeMs <= dueMs - this.sleepers.nowMs() + this.asleep.tokensMs(cost) + SLACK_MS) this.lift(name)
    } catch {
      // In an outage they keep what they have.
    }
    const abandoned = this.abandoned.get(name) ?? []
    this.abandoned.delete(name)
    for (const reserved of abandoned) this.discard(reserved)
  }

  /** The sleepers of a key give their reservations back, and reserve anew in their order. What does not come back would be charged twice. */
  private lift(name: string): void {
    if (!this.asleep.areInARow(name)) return
    const lifted = this.lifted(name)
    for (const { reserved } of lifted) this.discard(reserved)
    this.asleep.wake(lifted)
  }

  /** The sleepers of a key, which have to reserve anew; none where there are many. */
  private lifted(name: string, most = MOST_MOVED): readonly ReservedWait[] {
    const all = this.asleep.standing(name)
    if (all.length > most) return []
    this.lose(name, all)
    return all
  }

  private lose(name: string, lifted: readonly ReservedWait[]): void {
    for (const own of lifted) own.isLifted = true
    const queue = this.queues.get(name)
    if (queue !== undefined && lifted.length > 0) queue.returns++
  }

  private giveBack(reserved: Reserved, sentMs: number): void {
    this.discard(reserved)
    this.limits.gaveUp(reserved.key, this.sleepers.nowMs() * 1000, sentMs * 1000 + reserved.waitUs)
  }

  private discard(reserved: Reserved): void {
    this.reservations.discard(reserved, () => this.released(reserved.key))
  }

  private leftMs(untilMs: number): number {
    return Math.max(0, untilMs - this.sleepers.nowMs())
  }
}

async function after<Value>(before: Promise<unknown>, promise: Promise<Value>): Promise<Value> {
  const value = await promise
  await before.catch(() => undefined)
  return value
}
