import type { Assignment } from 'sluicegate-server/dist/quota/assignment.js'
import type { Holder } from 'sluicegate-server/dist/quota/holder.js'
import { type BudgetNumbers, type BudgetOptions, EXPIRY_SLACK_MS, QuotaBudget } from 'sluicegate-server/dist/quota/quota-budget.js'
import { Random } from 'sluicegate-testkit'
import { Timeline } from '../virtual-time.js'
import { SimulatedEnvoy } from './simulated-envoy.js'

/** What is tested: the budget itself, or one with a planted fault. */
export type BudgetClass = new (numbers: BudgetNumbers, options: BudgetOptions, nowMs: number) => QuotaBudget

/** What a random history found. */
export interface QuotaRun {
  readonly admitted: number
  readonly assignments: number
  /** The first moment at which an interval that ends there has more than the bound; undefined: none has. */
  /** The most that an interval had, as a part of the bound. */
  readonly highest: number
  readonly excess: { readonly atMs: number; readonly tokens: number; readonly bound: number } | undefined
}

const PACE = 1 / 1_000
const LENGTH_MS = 60_000

/** One data plane of a history. */
interface Member {
  readonly envoy: SimulatedEnvoy
  readonly pace: number
  /** Whether more requests come than can pass; otherwise some at a time. */
  isGreedy: boolean
  /** Whether they came at the last event. */
  isDraining: boolean
  /** Whether no request is decided now, as the process is stopped. */
  stoppedUntil: number
  stream: Stream | undefined
  /** Of the stream that the service lost last. */
  lost: Holder | undefined
  /** Of the timer that ends the assignment. */
  timer: number
}

interface Stream {
  isOpen: boolean
  holder: Holder | undefined
  /** When the last message arrives: they keep their order. */
  toClient: number
  toServer: number
}

/**
 * A random history of one budget and one to eight Envoys: messages are late, lost with their stream, streams break on one side before the other,
 * processes stop, timers fire late, clocks differ in pace, the service restarts. Checks every interval against the stated bound.
 */
export function quotaHistory(seed: number, Budget: BudgetClass = QuotaBudget): QuotaRun {
  return new History(seed, Budget).run()
}

class History {
  readonly #random: Random
  readonly #Budget: BudgetClass
  readonly #timeline = new Timeline()
  readonly #numbers: BudgetNumbers
  readonly #ttlSeconds: number
  readonly #reportMs: number
  readonly #delayMs: number
  readonly #leastDelayMs: number
  readonly #members: Member[]
  readonly #restarts: boolean
  /** Whether the service knows an Envoy that opens another stream. */
  readonly #knowsEnvoys: boolean
  #budget: QuotaBudget
  #admitted = 0
  #assignments = 0
  /** The most admissions of an interval that ends now, less what the rate allows in it. */
  #level = 0
  #levelAt = 0
  #holders = 0
  #highest = 0
  #excess: QuotaRun['excess']

  constructor(seed: number, Budget: BudgetClass) {
    const random = new Random(seed)
    this.#random = random
    this.#knowsEnvoys = seed % 3 === 0
    this.#Budget = Budget
    const ratePerSecond = random.magnitude(1, 5_000) / random.pick([1, 1, 1, 10])
    this.#numbers = { ratePerSecond, burst: Math.ceil((ratePerSecond * random.magnitude(10, 2_000)) / 1_000) }
    this.#ttlSeconds = random.integer(1, 10)
    this.#reportMs = Math.max(50, this.#ttlSeconds * 1_000 * random.pick([0.1, 0.2, 0.33, 1.2]))
    this.#delayMs = random.pick([1, 20, 300, 3_000, this.#ttlSeconds * 1_000])
    this.#leastDelayMs = random.pick([0, 0, 0, this.#ttlSeconds * 1_000 * (0.4 + random.fraction() * 0.2)])
    this.#restarts = random.chance(0.3)
    this.#budget = new Budget(this.#numbers, this.#options(), 0)
    this.#members = Array.from({ length: random.integer(1, 8) }, () => ({
      envoy: new SimulatedEnvoy(),
      pace: 1 + (random.fraction() * 2 - 1) * PACE * 0.99,
      isGreedy: random.chance(0.8),
      isDraining: false,
      stoppedUntil: 0,
      stream: undefined,
      lost: undefined,
      timer: 0,
    }))
  }

  run(): QuotaRun {
    const random = this.#random
    for (const member of this.#members) {
      this.#timeline.at(random.fraction() * 20_000, () => this.#connect(member))
      this.#timeline.at(random.fraction() * 100, () => this.#traffic(member))
      if (random.chance(0.5)) this.#timeline.at(random.fraction() * LENGTH_MS, () => this.#stop(member))
      for (let breaks = random.integer(0, random.pick([3, 3, 60])); breaks > 0; breaks--)
        this.#timeline.at(random.fraction() * LENGTH_MS, () => this.#break(member))
    }
    if (this.#restarts) this.#timeline.at(random.fraction() * LENGTH_MS, () => this.#restart())
    this.#timeline.at(100, () => this.#sweep())
    this.#timeline.runUntil(LENGTH_MS, () => this.#pass())
    return { admitted: this.#admitted, assignments: this.#assignments, highest: this.#highest, excess: this.#excess }
  }

  #options(): BudgetOptions {
    const onForgotten = (holder: Holder): void => {
      for (const member of this.#members ?? []) if (member.lost === holder) member.lost = undefined
    }
    return { ttlSeconds: this.#ttlSeconds, idleMs: this.#random.pick([600_000, 5_000]), onForgotten }
  }

  #delay(): number {
    return this.#leastDelayMs + this.#random.fraction() * this.#delayMs * (this.#random.chance(0.05) ? 5 : 1)
  }

  #ownSeconds({ pace }: Member): number {
    return (this.#timeline.now * pace) / 1_000
  }

  /** Some requests at once, now and then, or a change between many and few. */
  #traffic(member: Member): void {
    if (this.#random.chance(0.05)) member.isGreedy = !member.isGreedy
    if (!member.isGreedy && this.#timeline.now >= member.stoppedUntil)
      this.#admit(member.envoy.admit(this.#random.magnitude(1, 1e6), this.#ownSeconds(member)))
    const gap = this.#random.pick([20, 200, 1_500])
    this.#timeline.at(this.#timeline.now + this.#random.fraction() * gap, () => this.#traffic(member))
  }

  /** The time from the last event to now: greedy members admit evenly. */
  #pass(): void {
    let admitted = 0
    for (const member of this.#members) admitted += this.#drained(member)
    const seconds = (this.#timeline.now - this.#levelAt) / 1_000
    this.#levelAt = this.#timeline.now
    this.#level = Math.max(0, this.#level - this.#numbers.ratePerSecond * seconds + admitted)
    this.#admitted += admitted
    this.#check()
  }

  #drained(member: Member): number {
    const isSteady = member.isDraining
    member.isDraining = member.isGreedy && this.#timeline.now >= member.stoppedUntil
    return member.isDraining ? member.envoy.drain(this.#ownSeconds(member), isSteady) : 0
  }

  #admit(admitted: number): void {
    this.#admitted += admitted
    this.#level += admitted
    this.#check()
  }

  #check(): void {
    const bound = this.#numbers.burst + 1 + this.#holders
    this.#highest = Math.max(this.#highest, this.#level / bound)
    if (this.#level > bound * (1 + 1e-9)) this.#excess ??= { atMs: this.#timeline.now, tokens: this.#level, bound }
  }

  #connect(member: Member): void {
    const stream: Stream = { isOpen: true, holder: undefined, toClient: 0, toServer: 0 }
    member.stream = stream
    this.#report(member, stream)
  }

  #report(member: Member, stream: Stream): void {
    if (member.stream !== stream) return
    this.#timeline.at(this.#timeline.now + this.#reportMs * (0.9 + this.#random.fraction() * 0.2), () => this.#report(member, stream))
    if (this.#timeline.now < member.stoppedUntil || this.#random.chance(0.02)) return
    const requests = this.#random.pick([0, 1, this.#random.magnitude(1, 1e6), Number.MAX_SAFE_INTEGER])
    stream.toServer = Math.max(stream.toServer, this.#timeline.now + this.#delay())
    this.#timeline.at(stream.toServer, () => {
      if (!stream.isOpen) return
      const now = this.#timeline.now
      if (stream.holder === undefined || stream.holder.sent?.kind === 'abandon') stream.holder ??= this.#joined(member)
      else this.#budget.report(stream.holder, requests, now)
      this.#holders = Math.max(this.#holders, this.#budget.size)
      if (this.#random.chance(0.8)) this.#plan()
    })
  }

  #joined(member: Member): Holder {
    const { lost } = member
    member.lost = undefined
    if (lost?.goneUntilMs === undefined) return this.#budget.join(this.#timeline.now)
    this.#budget.comeBack(lost, this.#timeline.now)
    return lost
  }

  #sweep(): void {
    this.#plan()
    this.#timeline.at(this.#timeline.now + this.#random.pick([100, 1_000]), () => this.#sweep())
  }

  #plan(): void {
    for (const { holder, assignment } of this.#budget.plan(this.#timeline.now)) {
      this.#assignments++
      const member = this.#members.find(({ stream }) => stream?.holder === holder)
      // A stream that its client has left already: nothing arrives.
      if (member?.stream !== undefined) this.#deliver(member, member.stream, holder, assignment)
    }
  }

  #deliver(member: Member, stream: Stream, holder: Holder, assignment: Assignment): void {
    stream.toClient = Math.max(stream.toClient, this.#timeline.now + this.#delay())
    const arrive = (): void => {
      if (this.#timeline.now < member.stoppedUntil) {
        this.#timeline.at(member.stoppedUntil, arrive)
        return
      }
      if (member.stream !== stream) return
      this.#apply(member, assignment)
      stream.toServer = Math.max(stream.toServer, this.#timeline.now + this.#delay())
      this.#timeline.at(stream.toServer, () => {
        if (!stream.isOpen) return
        this.#budget.confirm(holder, this.#timeline.now)
        if (assignment.kind === 'abandon') stream.holder = undefined
      })
    }
    this.#timeline.at(stream.toClient, arrive)
  }

  #apply(member: Member, assignment: Assignment): void {
    member.envoy.apply(assignment, this.#ownSeconds(member))
    this.#admit(this.#drained(member))
    const timer = ++member.timer
    const lateMs = this.#random.pick([0, 0, this.#random.fraction() * (EXPIRY_SLACK_MS - 1)])
    const expire = (): void => {
      if (member.timer === timer) member.envoy.expire()
    }
    if (Number.isFinite(member.envoy.endsAt)) this.#timeline.at((member.envoy.endsAt / member.pace) * 1_000 + lateMs, expire)
  }

  /** One side loses the stream, the other one sees it later. */
  #break(member: Member): void {
    const { stream } = member
    if (stream === undefined) return
    const random = this.#random
    const atServer = (): void => {
      stream.isOpen = false
      if (stream.holder === undefined) return
      this.#budget.leave(stream.holder, this.#timeline.now)
      if (this.#knowsEnvoys) member.lost = stream.holder
    }
    const atClient = (): void => {
      if (member.stream !== stream) return
      member.stream = undefined
      this.#timeline.at(this.#timeline.now + random.fraction() * 5_000, () => {
        if (member.stream === undefined) this.#connect(member)
      })
    }
    // What was sent before the service saw the end may arrive until shortly after it.
    const [first, second, gapMs] = random.chance(0.5) ? [atServer, atClient, EXPIRY_SLACK_MS - 1] : [atClient, atServer, 20_000]
    first()
    this.#timeline.at(this.#timeline.now + random.fraction() * gapMs, second)
  }

  /** No requests and no messages for a time. */
  #stop(member: Member): void {
    member.stoppedUntil = this.#timeline.now + this.#random.magnitude(100, 30_000)
  }

  #restart(): void {
    for (const { stream } of this.#members) if (stream !== undefined) stream.isOpen = false
    for (const member of this.#members) this.#break(member)
    for (const member of this.#members) member.lost = undefined
    const now = this.#timeline.now
    const quietUntilMs = now + this.#ttlSeconds * 1_000 * (1 + PACE) + EXPIRY_SLACK_MS
    this.#budget = new this.#Budget(this.#numbers, { ...this.#options(), quietUntilMs }, now)
  }
}
