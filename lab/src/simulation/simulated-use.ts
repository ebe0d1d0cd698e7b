import type { Decision, Policy } from 'sluicegate'
import { type Admission, firstOver, specOf } from 'sluicegate-testkit'
import { Timeline } from 'sluicegate-testkit/virtual-time.js'
import { leaseStepOf } from 'sluicegate-testkit/leases/leased-fleet.js'
import { type LeaseStep, SOUND_RECORDS } from 'sluicegate-testkit/twins/lease-step.js'
import type { Grant } from '../../../packages/sluicegate/dist/lease/grant.js'
import { leaseUsOf } from '../../../packages/sluicegate/dist/lease/leasing.js'
import type { Answer, Backend, LeaseRequest, Operation } from '../../../packages/sluicegate/dist/shared/backend.js'
import { CountedShare } from '../../../packages/sluicegate/dist/shared/outage/local-share.js'
import { encodingsOf, type PolicyEncodings } from '../../../packages/sluicegate/dist/shared/steps/policy-encoding.js'
import { type GrantOf, grantsOf } from '../../../packages/sluicegate/dist/shared/steps/script-call.js'
import { StoreLimiter } from '../../../packages/sluicegate/dist/shared/store-limiter.js'
import type { Clock } from '../../../packages/sluicegate/dist/time/clock.js'
import { type Arrival, HORIZON_MS, type UseCell } from './use-cell.js'

/** The clock of a simulation, whose promises are settled before its time moves on. */
class TimelineClock implements Clock {
  /** Whether a promise may have been resolved since. */
  isUnsettled = false
  readonly #timeline: Timeline
  #turns = 1

  constructor(timeline: Timeline) {
    this.#timeline = timeline
  }

  nowMs(): number {
    return this.#timeline.now / 1000
  }

  after(ms: number, run: () => void): () => void {
    let isCancelled = false
    this.#timeline.after(Math.max(0, Math.ceil(ms * 1000)), () => {
      if (isCancelled) return
      this.isUnsettled = true
      // A timeout waits for turns of the event loop, in which sockets would be read.
      this.#turns = 3
      run()
    })
    return () => {
      isCancelled = true
    }
  }

  async settle(): Promise<void> {
    this.isUnsettled = false
    for (let turns = this.#turns; turns > 0; turns--) await new Promise<void>((resolve) => void setImmediate(resolve))
    this.#turns = 1
  }
}

/** What became of each arrival. */
export interface Decided {
  readonly node: number
  readonly askedUs: number
  readonly atUs: number
  /** When its token was spent, by the clock that counts it. */
  readonly spentUs: number
  readonly allowed: boolean
}

export interface SimulatedUse {
  readonly decided: readonly Decided[]
  /** When calls reached the store. */
  readonly callsUs: readonly number[]
}

export interface UseNetwork {
  /** Both ways together. */
  readonly roundTripUs: number
}

const START_US = 10_000_000

/** Each take is a call. */
export function simulateExact(policy: Policy, arrivals: readonly Arrival[], { roundTripUs }: UseNetwork): SimulatedUse {
  const store = new StoreSteps(encodingsOf(policy, () => 0))
  const halfUs = Math.floor(roundTripUs / 2)
  const decided: Decided[] = []
  const callsUs: number[] = []
  for (const { atUs, node } of arrivals) {
    const nowUs = START_US + atUs + halfUs
    callsUs.push(atUs + halfUs)
    decided.push({ node, askedUs: atUs, atUs: atUs + roundTripUs, spentUs: atUs + halfUs, allowed: store.take(nowUs, 1) })
  }
  return { decided, callsUs }
}

/** Each node is the limiter of the library. */
export async function simulateLeased(
  cell: UseCell,
  policy: Policy,
  arrivals: readonly Arrival[],
  { roundTripUs }: UseNetwork,
): Promise<SimulatedUse> {
  const timeline = new Timeline(START_US)
  const clock = new TimelineClock(timeline)
  const store = new SimulatedBackend(policy, timeline, clock, roundTripUs)
  const limiters = Array.from({ length: cell.nodes }, () => limiterOver(store, policy, clock, cell.nodes))
  const decided: Decided[] = []
  const passUntil = async (untilUs: number): Promise<void> => {
    while (timeline.next <= untilUs) {
      timeline.run(1)
      if (clock.isUnsettled) await clock.settle()
    }
  }
  for (const { atUs, node } of arrivals) {
    const dueUs = START_US + atUs
    await passUntil(dueUs)
    timeline.now = dueUs
    const done = ({ allowed, source }: Decision): void => {
      if (source === 'outage') throw new Error(`outage at ${atUs} node ${node}, after ${timeline.now - START_US - atUs}`)
      const nowUs = timeline.now - START_US
      // A take of the store was spent when the store decided it.
      decided.push({ node, askedUs: atUs, atUs: nowUs, spentUs: source === 'store' ? nowUs - store.backUs : nowUs, allowed })
    }
    const decision = (limiters[node] as StoreLimiter).take('k')
    if (decision instanceof Promise) {
      decision.then(done)
      await clock.settle()
    } else {
      done(decision)
      // A take that is decided at once may have begun a refill.
      if (timeline.next > dueUs) await undefined
    }
  }
  await passUntil(timeline.now + 5 * roundTripUs)
  for (const limiter of limiters) limiter.close()
  return { decided, callsUs: store.callsUs }
}

function limiterOver(backend: Backend, policy: Policy, clock: TimelineClock, nodes: number): StoreLimiter {
  return new StoreLimiter({
    policy,
    connect: () => backend,
    places: { serverOf: () => 'the store', slotOf: () => undefined },
    options: {},
    timeoutMs: 100,
    countedShare: () => new CountedShare(clock, async () => nodes),
    horizonMs: HORIZON_MS,
    lateAdvice: 'raise the horizon',
    clock,
  })
}

/** The store, half a round trip away. */
class SimulatedBackend implements Backend {
  readonly callsUs: number[] = []
  /** How long an answer takes. */
  readonly backUs: number
  readonly #policy: Policy
  readonly #timeline: Timeline
  readonly #clock: TimelineClock
  readonly #toUs: number
  readonly #store: StoreSteps
  readonly #grantOf: readonly GrantOf[]

  constructor(policy: Policy, timeline: Timeline, clock: TimelineClock, roundTripUs: number) {
    const leaseUs = leaseUsOf(HORIZON_MS)
    const encodings = encodingsOf(policy, () => leaseUs)
    this.#policy = policy
    this.#timeline = timeline
    this.#clock = clock
    this.#toUs = Math.floor(roundTripUs / 2)
    this.backUs = roundTripUs - this.#toUs
    this.#store = new StoreSteps(encodings)
    this.#grantOf = encodings.encodings.map((encoding) => grantsOf(encoding, leaseUs))
  }

  lease({ part, want, least }: LeaseRequest): Promise<Grant> {
    return this.#call((nowUs) => {
      const lease = (this.#store.steps[part] as LeaseStep).lease(nowUs, want, least, 0)
      return (this.#grantOf[part] as GrantOf)(lease, least)
    })
  }

  execute(operation: Operation): Promise<Answer> {
    return this.#call((nowUs) => answerOf(this.#policy, operation, this.#store, nowUs))
  }

  #call<Result>(run: (nowUs: number) => Result): Promise<Result> {
    const timeline = this.#timeline
    return new Promise((resolve) => {
      timeline.after(this.#toUs, () => {
        this.callsUs.push(timeline.now - START_US)
        const result = run(timeline.now)
        timeline.after(this.backUs, () => {
          this.#clock.isUnsettled = true
          resolve(result)
        })
      })
    })
  }
}

class StoreSteps {
  readonly steps: readonly LeaseStep[]

  constructor({ encodings }: PolicyEncodings) {
    this.steps = encodings.map((encoding) => leaseStepOf(encoding, encoding.numbersAt(0).split(' ').map(Number), SOUND_RECORDS))
  }

  take(nowUs: number, cost: number): boolean {
    if (this.untilFreeUs(nowUs, cost) > 0) return false
    for (const step of this.steps) step.take(nowUs, cost)
    return true
  }

  untilFreeUs(nowUs: number, cost: number): number {
    let us = 0
    for (const step of this.steps) us = Math.max(us, step.untilFreeUs(nowUs, cost))
    return us
  }
}

function answerOf(policy: Policy, operation: Operation, store: StoreSteps, nowUs: number): Answer {
  if (operation.verb === 'giveBack' && 'grantId' in operation.charge) {
    const { part, grantId } = operation.charge
    ;(store.steps[part] as LeaseStep).giveBack(nowUs, operation.tokens, grantId)
    return { done: true }
  }
  if (operation.verb !== 'take') throw new TypeError(`no ${operation.verb} here`)
  const { cost } = operation
  const allowed = store.take(nowUs, cost)
  const partOf = (part: Policy, step: LeaseStep): Decision => {
    const freeUs = allowed ? 0 : step.untilFreeUs(nowUs, cost)
    return {
      allowed: freeUs === 0,
      limit: part.limit,
      remaining: step.remainingAt(nowUs),
      retryAfterMs: Math.ceil(freeUs / 1000),
      resetAfterMs: Math.ceil(step.untilFullUs(nowUs) / 1000),
      policy: part.name,
      source: 'store',
    }
  }
  const parts = (policy.policies ?? [policy]).map((part, i) => partOf(part, store.steps[i] as LeaseStep))
  if (policy.policies === undefined) return { done: allowed, decision: parts[0] as Decision }
  const worst = parts.reduce((most, part) => (part.retryAfterMs > most.retryAfterMs ? part : most))
  return { done: allowed, decision: { ...worst, allowed, parts } }
}

/** Whether more was admitted than the policy allows, in any interval. */
export function isOver(policy: Policy, decided: readonly Decided[]): boolean {
  const admissions: Admission[] = decided.filter(({ allowed }) => allowed).map(({ spentUs }) => ({ atUs: spentUs + START_US, cost: 1 }))
  admissions.sort((a, b) => a.atUs - b.atUs)
  return firstOver(specOf(policy), admissions) !== undefined
}
