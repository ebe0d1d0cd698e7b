import { nameOf } from '../../key.js'
import { isRate, type Policy } from '../../policy/policy.js'
import type { Reserved } from '../backend.js'
import type { Sleepers } from './sleepers.js'
import { ReservedTimes, type Wait } from './waiting-queue.js'

/** Answers are in whole milliseconds, and take unequal times. */
export const SLACK_MS = 2

/** A reservation, and when it was asked for. */
export type SentReservation = Reserved & { readonly sentMs: number }

/** A waiter that sleeps until its reservation. */
export interface ReservedWait {
  readonly wait: Wait
  readonly reserved: Reserved
  /** Its place among all of this process. */
  readonly place: number
  /** The earliest reading at which it is due: its answer may have come late. */
  fromMs: number
  /** When it wakes. */
  dueMs: number
  /** Takes its times out of those of its key. */
  leave(): void
  /** Its time has changed. */
  isMoved: boolean
  /** Its reservation is no more: it has to reserve again. */
  isLifted: boolean
  /** It goes with tokens that came back, and its reservation is not needed. */
  isGiven: boolean
}

/** What the backend says of a request that it received behind all that had reserved: it needs `cost` tokens, and is due `freeMs` after the answer. */
export interface Newcomer {
  readonly sentMs: number
  readonly freeMs: number
  readonly cost: number
}

/** Whether a sleeper counts on its reservation. */
export function isStanding({ isLifted, isGiven }: ReservedWait): boolean {
  return !isLifted && !isGiven
}

/** The waiters of each key that sleep until their reservations, in the order in which they reserved. */
export class ReservedWaits {
  private readonly sleepers: Sleepers
  private readonly policy: () => Policy
  /** How many have reserved until now. */
  count = 0
  private readonly byName = new Map<string, Set<ReservedWait>>()
  /** The earliest times at which reservations may be redeemed, and the times until which their waiters sleep. */
  private readonly awaited = new ReservedTimes()
  private readonly slept = new ReservedTimes()

  constructor(sleepers: Sleepers, policy: () => Policy) {
    this.sleepers = sleepers
    this.policy = policy
  }

  /** Keys with sleepers. */
  get names(): string[] {
    return [...this.byName.keys()]
  }

  has(name: string): boolean {
    return this.byName.has(name)
  }

  add(wait: Wait, reserved: SentReservation): ReservedWait {
    const name = nameOf(reserved.key)
    const dueMs = this.dueMs(name, reserved, wait.untilMs)
    const fromMs = reserved.sentMs + reserved.waitUs / 1000
    const leave = this.timed(name, fromMs, dueMs)
    const place = ++this.count
    const own = { wait, reserved, place, fromMs, dueMs, leave, isMoved: reserved.waitUs > 0, isLifted: false, isGiven: false }
    const others = this.byName.get(name) ?? new Set()
    this.byName.set(name, others.add(own))
    return own
  }

  remove(own: ReservedWait): void {
    const name = nameOf(own.reserved.key)
    const others = this.byName.get(name)
    others?.delete(own)
    if (others?.size === 0) this.byName.delete(name)
    own.leave()
  }

  /** Until it is due, or woken for another reason. Rejects with the reason of its signal, or of the end of all. */
  async sleep(own: ReservedWait): Promise<void> {
    while (own.isMoved && isStanding(own)) {
      own.isMoved = false
      await this.sleepers.sleepUntil(Math.round(own.dueMs * 1000), own.wait.request.signal, own.wait)
    }
  }

  wake(all: readonly ReservedWait[]): void {
    for (const { wait } of all) this.sleepers.wake(wait)
  }

  /** Those that count on their reservations, and were among the first `count`. */
  standing(name: string, count = this.count): readonly ReservedWait[] {
    return [...(this.byName.get(name) ?? [])].filter((own) => own.place <= count && isStanding(own))
  }

  latest(name: string): ReservedWait | undefined {
    return [...(this.byName.get(name) ?? [])].at(-1)
  }

  /** How many have reserved behind it. */
  countBehind({ reserved }: ReservedWait): number {
    const all = this.byName.get(nameOf(reserved.key)) ?? []
    return [...all].filter((other) => other.reserved.order > reserved.order).length
  }

  /** The earliest reading at which all of them may have passed. */
  allPassedMs(name: string): number {
    return this.awaited.latestMs(name)
  }

  /** Whether no other process has reserved between those of a rate: only then all of them comes back, the newest first. */
  areInARow(name: string): boolean {
    const slackMs = Math.max(SLACK_MS, this.tokensMs(1) / 2)
    let beforeMs = Number.POSITIVE_INFINITY
    return this.standing(name).every(({ dueMs, reserved }) => {
      const isNext = dueMs - beforeMs < this.tokensMs(reserved.cost) + slackMs
      beforeMs = dueMs
      return isNext
    })
  }

  /** Whether a newcomer that needs `cost` tokens would pass before its time, behind all that have reserved. */
  isLate(name: string, freeMs: number, cost: number): boolean {
    const latest = this.latest(name)
    if (latest === undefined || !isRate(this.policy())) return false
    return freeMs < latest.dueMs - this.sleepers.nowMs() + this.tokensMs(cost) - SLACK_MS
  }

  /** Whether such a newcomer would pass before the first: what all have reserved is not there any more. */
  isBefore(first: ReservedWait | undefined, { freeMs, cost }: Newcomer): boolean {
    if (first === undefined) return false
    const more = first.reserved.cost - cost
    if (more !== 0 && !isRate(this.policy())) return false
    return freeMs + this.tokensMs(more) < first.fromMs - this.sleepers.nowMs() - SLACK_MS
  }

  /** Such a newcomer would come behind all of these, and perhaps others: each is due no later than so many tokens before it as are reserved behind it. */
  moveSooner(all: readonly ReservedWait[], { sentMs, freeMs, cost }: Newcomer): void {
    const nowMs = this.sleepers.nowMs()
    let behind = cost
    for (const own of all.toReversed()) {
      const beforeMs = freeMs - this.tokensMs(behind)
      behind += own.reserved.cost
      if (nowMs + beforeMs >= own.dueMs) continue
      own.leave()
      own.fromMs = sentMs + beforeMs
      own.dueMs = nowMs + beforeMs
      own.leave = this.timed(nameOf(own.reserved.key), own.fromMs, own.dueMs)
      own.isMoved = true
    }
    this.wake(all.filter(({ isMoved }) => isMoved))
  }

  /** In which `tokens` flow back. */
  tokensMs(tokens: number): number {
    const { windowMs, limit } = this.policy()
    return (tokens * windowMs) / limit
  }

  /**
   * When to wake for a reservation: not before earlier ones. Answers take unequal times, so of reservations for one moment the last would be
   * redeemed first.
   */
  private dueMs(name: string, { waitUs }: Reserved, untilMs: number): number {
    const ownMs = this.sleepers.inUs(waitUs / 1000) / 1000
    const latestMs = this.slept.latestMs(name)
    return waitUs > 0 && latestMs <= untilMs ? Math.max(ownMs, latestMs) : ownMs
  }

  /** Its earliest time, and when it wakes; the result takes them out. */
  private timed(name: string, fromMs: number, dueMs: number): () => void {
    const served = this.awaited.add(name, fromMs)
    const woken = this.slept.add(name, dueMs)
    return () => {
      served()
      woken()
    }
  }
}
