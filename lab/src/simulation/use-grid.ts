import type { Decision, Policy } from 'sluicegate'
import { type Admission, firstOver, specOf } from 'sluicegate-testkit'
import { leaseStepOf } from 'sluicegate-testkit/leases/leased-fleet.js'
import { quantile } from 'sluicegate-testkit/samples.js'
import { type LeaseStep, SOUND_RECORDS } from 'sluicegate-testkit/twins/lease-step.js'
import { Timeline } from 'sluicegate-testkit/virtual-time.js'
import type { Grant } from '../../../packages/sluicegate/dist/lease/grant.js'
import { leaseUsOf } from '../../../packages/sluicegate/dist/lease/leasing.js'
import { BackedLimiter } from '../../../packages/sluicegate/dist/shared/backed-limiter.js'
import type { Answer, Backend, LeaseRequest, Operation } from '../../../packages/sluicegate/dist/shared/backend.js'
import { CountedShare } from '../../../packages/sluicegate/dist/shared/outage/local-share.js'
import { encodingsOf, type PolicyEncodings } from '../../../packages/sluicegate/dist/shared/steps/policy-encoding.js'
import { type GrantOf, grantsOf } from '../../../packages/sluicegate/dist/shared/steps/step-answers.js'
import type { Clock } from '../../../packages/sluicegate/dist/time/clock.js'
import { ARRIVALS, type Arrival, arrivalsOf, HORIZON_MS, POLICIES, perSecondOf, policyOf, type UseCell } from './use-cell.js'

/** Leases in one run beside exact mode, over the same arrivals. */
type UseFigures = ReturnType<typeof figuresOf>

const [WARM_UP_S, FAIR_S, LEAST_S, MOST_S] = [2, 5, 6, 2_000]

/** Of a run that has so many requests, as far as the time allows. */
function secondsOf(cell: UseCell, requests: number): number {
  return Math.round(Math.min(MOST_S, Math.max(LEAST_S, requests / perSecondOf(cell)))) + WARM_UP_S
}

function figuresOf(cell: UseCell, seconds: number, exact: SimulatedUse, leased: SimulatedUse) {
  const [ours, theirs] = [leased, exact].map(({ decided }) => decided.filter(({ askedUs }) => askedUs >= WARM_UP_S * 1e6)) as [
    Decided[],
    Decided[],
  ]
  const admitted = (all: readonly Decided[]): number => all.reduce((sum, { allowed }) => sum + (allowed ? 1 : 0), 0)
  const calls = leased.callsUs.filter((us) => us >= WARM_UP_S * 1e6).length
  return {
    requests: ours.length,
    /** Admitted, of what exact mode admitted, and of the requests in exact mode. */
    share: admitted(ours) / Math.max(1, admitted(theirs)),
    exactShare: admitted(theirs) / Math.max(1, theirs.length),
    callsPerRequest: calls / Math.max(1, ours.length),
    callsPerToken: calls / Math.max(1, admitted(ours)),
    p99Ms:
      quantile(
        ours.map(({ askedUs, atUs }) => atUs - askedUs).sort((a, b) => a - b),
        0.99,
      ) / 1000,
    /** Jain's index of what equal nodes got in 5 s, the mean. */
    jain: jainOf(cell, ours, seconds),
    jainExact: jainOf(cell, theirs, seconds),
    /** The longest time in which all requests of a node were denied, while another node got something. */
    starvedS: starvedS(cell, ours),
    starvedExactS: starvedS(cell, theirs),
  }
}

function jainOf(cell: UseCell, decided: readonly Decided[], seconds: number): number {
  const first = cell.arrivals === 'skewed' ? 1 : 0
  const count = cell.nodes - first
  if (count < 2) return 1
  const spans = Math.max(1, Math.floor((seconds - WARM_UP_S) / FAIR_S))
  const got = Array.from({ length: spans }, () => new Float64Array(count))
  for (const { node, askedUs, allowed } of decided) {
    const span = Math.floor((askedUs / 1e6 - WARM_UP_S) / FAIR_S)
    const counts = got[span]
    if (allowed && node >= first && counts !== undefined) counts[node - first] = (counts[node - first] as number) + 1
  }
  let sum = 0
  for (const counts of got) {
    const total = counts.reduce((all, each) => all + each, 0)
    const squares = counts.reduce((all, each) => all + each * each, 0)
    sum += squares === 0 ? 1 : (total * total) / (count * squares)
  }
  return sum / spans
}

function starvedS(cell: UseCell, decided: readonly Decided[]): number {
  const inTime = [...decided].sort((a, b) => a.askedUs - b.askedUs)
  const sinceUs = new Float64Array(cell.nodes).fill(-1)
  const others = new Int32Array(cell.nodes)
  let admitted = 0
  let longestUs = 0
  for (const { node, askedUs, allowed } of inTime) {
    if (allowed) {
      admitted++
      sinceUs[node] = -1
    } else if ((sinceUs[node] as number) < 0) {
      sinceUs[node] = askedUs
      others[node] = admitted
    } else if (admitted > (others[node] as number)) longestUs = Math.max(longestUs, askedUs - (sinceUs[node] as number))
  }
  return longestUs / 1e6
}

/** A cell of the simulated grid and what came of it. */
export interface SimulatedCell extends UseCell, UseFigures {
  readonly isOver: boolean
}

const NETWORK = { roundTripUs: 300 }
const SEED = 1

/** The whole grid for a bucket; of the other policies every second value. */
export function gridCells(isQuick = false): UseCell[] {
  const cells: UseCell[] = []
  for (const policy of POLICIES) {
    const isWhole = policy === 'token-bucket' && !isQuick
    const nodesOf = isWhole ? [2, 4, 16, 64] : [2, 16]
    const requests = isWhole ? [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100] : [0.5, 2, 10, 50]
    const demands = isWhole ? [0.5, 0.9, 1, 1.5, 2, 10] : [0.9, 1, 2, 10]
    for (const arrivals of ARRIVALS) {
      for (const nodes of nodesOf) {
        for (const requestsPerLease of requests) {
          for (const demand of demands) cells.push({ policy, arrivals, nodes, requestsPerLease, demand })
        }
      }
    }
  }
  return cells.filter((cell) => policyOf(cell) !== undefined)
}

/** One cell, leased and exact over the same arrivals. @param requests how many, as far as the time allows. */
export async function simulatedCell(cell: UseCell, requests: number): Promise<SimulatedCell> {
  const policy = policyOf(cell)
  if (policy === undefined) throw new Error('the policy of the cell is too small to be leased')
  const seconds = secondsOf(cell, requests)
  const arrivals = arrivalsOf(cell, seconds, SEED)
  const exact = simulateExact(policy, arrivals, NETWORK)
  const leased = await simulateLeased(cell, policy, arrivals, NETWORK)
  return { ...cell, ...figuresOf(cell, seconds, exact, leased), isOver: isOver(policy, leased.decided) }
}

/** What leases are to reach beside exact mode, and what a cell of the grid must be for it to count. */
export interface Target {
  readonly name: string
  applies(cell: SimulatedCell): boolean
  holds(cell: SimulatedCell): boolean
}

export const TARGETS: readonly Target[] = [
  { name: 'never over the policy', applies: () => true, holds: (cell) => !cell.isOver },
  { name: '99 % of what exact mode admits, demand up to 0.9', applies: ({ demand }) => demand <= 0.9, holds: ({ share }) => share >= 0.99 },
  { name: '97 % of what exact mode admits, any demand', applies: ({ demand }) => demand > 0.9, holds: ({ share }) => share >= 0.97 },
  { name: '1.05 calls a request', applies: () => true, holds: ({ callsPerRequest }) => callsPerRequest <= 1.05 },
  {
    name: '0.3 calls a request, from 10 requests a lease on',
    applies: ({ requestsPerLease }) => requestsPerLease >= 10,
    holds: ({ callsPerRequest }) => callsPerRequest <= 0.3,
  },
  {
    name: '0.05 calls a request, from 50 requests a lease on',
    applies: ({ requestsPerLease }) => requestsPerLease >= 50,
    holds: ({ callsPerRequest }) => callsPerRequest <= 0.05,
  },
  { name: '2 calls an admitted token', applies: ({ demand }) => demand > 1, holds: ({ callsPerToken }) => callsPerToken <= 2 },
  { name: '99 % of the takes as fast as a call', applies: () => true, holds: ({ p99Ms }) => p99Ms * 1000 <= NETWORK.roundTripUs },
  {
    name: "Jain's index of equal nodes 0.95 over 5 s, or as exact mode has it",
    applies: ({ arrivals }) => arrivals !== 'skewed',
    holds: ({ jain, jainExact }) => jain >= Math.min(0.95, jainExact - 0.01),
  },
  {
    name: 'no node without a token for more than 1 s, or than in exact mode',
    applies: () => true,
    holds: ({ starvedS, starvedExactS }) => starvedS <= Math.max(1, starvedExactS),
  },
]

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
interface Decided {
  readonly node: number
  readonly askedUs: number
  readonly atUs: number
  /** When its token was spent, by the clock that counts it. */
  readonly spentUs: number
  readonly allowed: boolean
}

interface SimulatedUse {
  readonly decided: readonly Decided[]
  /** When calls reached the store. */
  readonly callsUs: readonly number[]
}

interface UseNetwork {
  /** Both ways together. */
  readonly roundTripUs: number
}

const START_US = 10_000_000

/** Each take is a call. */
function simulateExact(policy: Policy, arrivals: readonly Arrival[], { roundTripUs }: UseNetwork): SimulatedUse {
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
async function simulateLeased(
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
    const decision = (limiters[node] as BackedLimiter).take('k')
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

function limiterOver(backend: Backend, policy: Policy, clock: TimelineClock, nodes: number): BackedLimiter {
  return new BackedLimiter({
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
      const lease = (this.#store.steps[part] as LeaseStep).lease(nowUs, want, least)
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
function isOver(policy: Policy, decided: readonly Decided[]): boolean {
  const admissions: Admission[] = decided.filter(({ allowed }) => allowed).map(({ spentUs }) => ({ atUs: spentUs + START_US, cost: 1 }))
  admissions.sort((a, b) => a.atUs - b.atUs)
  return firstOver(specOf(policy), admissions) !== undefined
}
