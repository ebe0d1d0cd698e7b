import { createLimiter } from '../../../sluicegate/dist/create-limiter.js'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import { Middleware } from '../../../sluicegate/dist/middleware/middleware.js'
import { changedPolicy, type Policy } from '../../../sluicegate/dist/policy/policy.js'
import { createQueue } from '../../../sluicegate/dist/queue/create-queue.js'
import type { RunningJob } from '../../../sluicegate/dist/queue/queue-options.js'
import { type ManualClock, manualClock } from '../../../sluicegate/dist/time/clock.js'
import { type PlainRequest, plainFacts } from '../adapters/http-client.js'
import { policyOf } from '../kit.js'
import type { Oracle, PolicySpec, SinglePolicySpec } from '../oracle/oracle.js'
import { oracleFor } from '../oracle/versioned-oracle.js'
import { Random } from '../random.js'
import { microtasks } from '../turns.js'
import { type SettlingFault, type SettlingLimiter, settlingLimiter } from './settling-limiter.js'

const KEY = 'k'

/** What a history is played on. */
export interface SettledSubject {
  readonly limiter: SettlingLimiter
  readonly clock: ManualClock
  /** Sets the clock, and that of a store. */
  set(ms: number): void
  /** Another account for the key from now on. */
  choose(account: Account): void
  update(spec: PolicySpec): void
  /** The oracle of a policy; default that of the contract. */
  readonly oracleOf?: (spec: PolicySpec) => Oracle
  /** Waits until what was begun is done. */
  flush(): Promise<void>
}

/** The policies of a history. */
export interface SettledPlan {
  readonly specs: Readonly<Record<Account, PolicySpec>>
  /** To which the own policy is updated. */
  readonly updates: readonly PolicySpec[]
  readonly mostCost: number
  /** A while in which something flows back, or a window ends. */
  readonly whileMs: number
  readonly startMs: number
  /** Whether jobs wait for their tokens. */
  readonly waits: boolean
}

/** A charge that is not settled yet. */
interface Held {
  readonly take: NetTake
  /** Ends it. @returns what it really cost. */
  readonly end: (random: Random) => number | Promise<number>
}

/** What came of a history. */
export interface SettledResult {
  /** The first take that would not have passed if only what was settled had been charged; undefined when there is none. */
  readonly excess: string | undefined
  readonly operations: number
  /** Tokens that came back. */
  readonly returned: number
}

/**
 * Plays one random history on one key: takes, jobs that are settled late, twice, or above their cost; requests of middleware that turn out not
 * to count; requests that another limit denies late; changes of the plan of the key and of the policy. At the end everything that can be taken
 * is taken, between the last settlements.
 */
export async function playSettled(random: Random, subject: SettledSubject, plan: SettledPlan, steps: number): Promise<SettledResult> {
  return new SettledHistory(random, subject, plan).play(steps)
}

class SettledHistory {
  private readonly random: Random
  private readonly subject: SettledSubject
  private readonly plan: SettledPlan
  private readonly net: NetHistory
  private readonly held: Held[] = []
  private readonly queue: ReturnType<typeof createQueue>
  private readonly counting: Middleware<PlainRequest>
  private readonly several: Middleware<PlainRequest>
  private nowMs: number
  private verdicts: (() => void)[] = []
  private operations = 0
  private returned = 0

  constructor(random: Random, subject: SettledSubject, plan: SettledPlan) {
    this.random = random
    this.subject = subject
    this.plan = plan
    this.nowMs = plan.startMs
    this.net = new NetHistory(plan.specs)
    const { limiter, clock } = subject
    this.queue = createQueue(limiter, { clock })
    const environment = { nowMs: () => clock.nowMs() }
    const cost = (): number => this.nextCost
    this.counting = new Middleware<PlainRequest>({ limiter, key: () => KEY, cost, counts: 'failures' }, environment)
    const late = new LateDenial(limiter.policy, (verdict) => this.verdicts.push(verdict))
    this.several = new Middleware<PlainRequest>({ limits: [{ limiter, key: () => KEY, cost }, { limiter: late }] }, environment)
  }

  private nextCost = 1

  async play(steps: number): Promise<SettledResult> {
    const { random } = this
    const often = [
      () => this.pass(1.5),
      () => this.pass(0.2),
      () => this.take(),
      () => this.run(),
      () => this.run(),
      () => this.end(),
      () => this.end(),
    ]
    const others = [() => this.count(), () => this.undone(), () => this.change(), () => this.update()]
    for (let step = 0; step < steps; step++) await random.pick(random.chance(0.7) ? often : others)()
    for (let round = 0; round < 3; round++) {
      await this.pass(2)
      await this.takeAll()
      while (this.held.length > 0 && random.chance(0.7)) await this.end()
      await this.takeAll()
    }
    while (this.held.length > 0) await this.end()
    await this.takeAll()
    this.queue.close()
    return { excess: this.net.excess(this.subject.oracleOf), operations: this.operations, returned: this.returned }
  }

  private async pass(whiles: number): Promise<void> {
    this.nowMs = Math.round((this.nowMs + this.random.fraction() * whiles * this.plan.whileMs) * 1000) / 1000
    this.subject.set(this.nowMs)
    await this.subject.flush()
  }

  private async take(cost = this.cost()): Promise<boolean> {
    this.operations++
    const decision = await this.subject.limiter.take(KEY, cost)
    if (decision.allowed) this.charged(decision, cost)
    return decision.allowed
  }

  private async takeAll(): Promise<void> {
    for (let cost = this.plan.mostCost; cost >= 1; cost = Math.floor(cost / 2)) while (await this.take(cost));
  }

  private async run(): Promise<void> {
    this.operations++
    const cost = this.cost()
    const maxWaitMs = this.plan.waits && this.random.chance(0.2) ? this.plan.whileMs : 0
    const started = new Promise<void>((resolve) => {
      const work = (job: RunningJob): Promise<void> => {
        const take = this.charged(job.decision, cost)
        const ended = new Promise<void>((end) =>
          this.held.push({ take, end: (random) => this.settle(job, cost, take, random).finally(end) }),
        )
        resolve()
        return ended
      }
      this.queue.run(KEY, work, { cost, maxWait: maxWaitMs }).then(resolve, resolve)
    })
    if (maxWaitMs === 0) await started
    else await this.subject.flush()
  }

  private async settle(job: RunningJob, cost: number, take: NetTake, random: Random): Promise<number> {
    const actual = random.chance(0.6) ? 0 : random.integer(0, random.chance(0.2) ? cost + 3 : cost)
    // Only the first of two at once counts.
    const isSecond = random.chance(0.3)
    if (actual > cost && !isSecond) {
      this.net.add(this.net.accountOf(take), { verb: 'penalize', tokens: actual - cost, atMs: this.nowMs })
    }
    await Promise.all([isSecond && job.settle(0), job.settle(actual)])
    if (random.chance(0.2)) await job.settle(0)
    return isSecond ? 0 : Math.min(actual, cost)
  }

  private async count(): Promise<void> {
    this.operations++
    this.nextCost = this.cost()
    const cost = this.nextCost
    const outcome = await this.counting.handle(plainFacts({}), {})
    if (!outcome.passes) return
    const take = this.charged(outcome.decision as Decision, cost)
    this.held.push({
      take,
      end: async (random) => {
        const status = random.chance(0.8) ? 200 : 500
        await outcome.settle?.(status)
        await this.subject.flush()
        return status === 200 ? 0 : cost
      },
    })
  }

  /** What another limit denies, late. */
  private async undone(): Promise<void> {
    this.operations++
    this.nextCost = this.cost()
    const before = this.verdicts.length
    const outcome = Promise.resolve(this.several.handle(plainFacts({}), {}))
    outcome.catch(() => undefined)
    await this.subject.flush()
    const verdict = this.verdicts[before]
    // The first limit denied.
    if (verdict === undefined) return
    const take = this.charged(undefined, 0)
    this.held.push({
      take,
      end: async () => {
        verdict()
        await outcome
        await this.subject.flush()
        return 0
      },
    })
  }

  private async end(): Promise<void> {
    const { held, random } = this
    const [ended] = held.splice(random.integer(0, held.length - 1), 1)
    if (ended === undefined) return
    this.operations++
    const before = (await this.subject.limiter.peek(KEY)).remaining
    ended.take.cost = await ended.end(random)
    this.returned += Math.max(0, (await this.subject.limiter.peek(KEY)).remaining - before)
  }

  private async change(): Promise<void> {
    this.operations++
    this.subject.choose(this.random.pick(['own', 'other'] as const))
  }

  private async update(): Promise<void> {
    const { updates } = this.plan
    if (updates.length === 0 || this.random.chance(0.5)) return
    this.operations++
    const spec = this.random.pick(updates)
    this.subject.update(spec)
    this.net.add('own', { verb: 'update', spec, atMs: this.nowMs })
  }

  private cost(): number {
    return this.random.integer(1, this.plan.mostCost)
  }

  private charged(decision: Decision | undefined, cost: number): NetTake {
    const take: NetEvent & NetTake = { verb: 'take', cost, atMs: this.nowMs }
    this.net.add(decision?.policy.startsWith('other') ? 'other' : 'own', take)
    return take
  }
}

/** A limit that denies each request at a sign. */
class LateDenial {
  readonly policy: SettlingLimiter['policy']
  private readonly onAsked: (verdict: () => void) => void

  constructor(policy: SettlingLimiter['policy'], onAsked: (verdict: () => void) => void) {
    this.policy = changedPolicy(policy, { name: 'late' })
    this.onAsked = onAsked
  }

  async peek(): Promise<Decision> {
    return this.denial
  }

  take(): Promise<Decision> {
    return new Promise((resolve) => this.onAsked(() => resolve(this.denial)))
  }

  async refund(): Promise<Decision> {
    return this.denial
  }

  private get denial(): Decision {
    return { allowed: false, limit: 1, remaining: 0, retryAfterMs: 1, resetAfterMs: 1, policy: 'late', source: 'memory' }
  }
}

/** Which policy of a key was charged. */
export type Account = 'own' | 'other'

/** A take that passed, and what it really cost, which is corrected when that is known. */
interface NetTake {
  readonly verb: 'take'
  cost: number
  readonly atMs: number
}

type NetEvent =
  | NetTake
  | { readonly verb: 'penalize'; readonly tokens: number; readonly atMs: number }
  | { readonly verb: 'update'; readonly spec: PolicySpec; readonly atMs: number }

/**
 * What passed of each account, net: as if each take had charged from the beginning what it was settled to, and nothing had ever come back.
 * Every take has to pass by it too. So what passes net in any interval is within the policy.
 */
class NetHistory {
  private readonly specs: Readonly<Record<Account, PolicySpec>>
  private readonly events: Record<Account, NetEvent[]> = { own: [], other: [] }

  constructor(specs: Readonly<Record<Account, PolicySpec>>) {
    this.specs = specs
  }

  add(account: Account, event: NetEvent): void {
    this.events[account].push(event)
  }

  accountOf(take: NetTake): Account {
    return this.events.other.includes(take) ? 'other' : 'own'
  }

  /** The first take that does not pass; undefined when all do. */
  excess(oracleOf: (spec: PolicySpec) => Oracle = oracleFor): string | undefined {
    return this.excessOf('own', oracleOf) ?? this.excessOf('other', oracleOf)
  }

  private excessOf(account: Account, oracleOf: (spec: PolicySpec) => Oracle): string | undefined {
    const oracle = oracleOf(this.specs[account])
    for (const [i, event] of this.events[account].entries()) {
      const { verb, atMs } = event
      if (verb === 'update') oracle.update(event.spec, atMs)
      else if (verb === 'penalize') oracle.penalize('k', event.tokens, atMs)
      else if (event.cost > 0 && !oracle.take('k', event.cost, atMs).allowed) return `${account}, take ${i} of ${event.cost} at ${atMs}`
    }
    return undefined
  }
}

export const SETTLED_ALGORITHMS = ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log'] as const
export type SettledAlgorithm = (typeof SETTLED_ALGORITHMS)[number]

/** Steps of a history, without those of its end. */
export const STEPS = { least: 6, most: 30 }
const START_MS = 1_790_000_000_000

/** The policies of the history of a seed: small limits, in windows of many lengths. */
export function settledPlan(random: Random, algorithm: SettledAlgorithm): SettledPlan {
  const windowMs = random.pick([1, 20, 100, 1000, 60_000])
  const specOf = (): SinglePolicySpec => {
    const limit = random.integer(1, 20)
    if (algorithm === 'token-bucket' || algorithm === 'gcra') return { algorithm, limit, windowMs, burst: random.integer(2, 20) }
    return { algorithm, limit, windowMs }
  }
  const specs = { own: specOf(), other: specOf() }
  const updates = random.chance(0.5) ? [specs.own, specOf(), specOf()] : []
  return { specs, updates, mostCost: random.integer(1, 8), whileMs: windowMs, startMs: START_MS + random.integer(0, 100_000), waits: true }
}

/**
 * The history of a seed in memory.
 *
 * @param waits whether jobs wait for their tokens. Their charge counts from the time for which it is booked. A clock that is set by hand jumps past that
 * time, and the history counts it at the end of the jump: in rare histories a later take then seems to be too much.
 */
export async function settledInMemory(
  seed: number,
  algorithm: SettledAlgorithm,
  fault?: SettlingFault,
  waits = true,
): Promise<SettledResult> {
  const random = new Random(seed)
  const plan = { ...settledPlan(random, algorithm), waits }
  const clock = manualClock(plan.startMs)
  let account: Account = 'own'
  const other = namedSpec(plan.specs.other, 'other')
  const limiter = createLimiter(namedSpec(plan.specs.own, 'own'), {
    clock,
    maxKeys: 8,
    policyFor: () => (account === 'other' ? other : undefined),
    policies: [other],
  })
  const subject: SettledSubject = {
    limiter: settlingLimiter(() => limiter, fault),
    clock,
    set: (ms) => clock.set(ms),
    choose: (next) => {
      account = next
    },
    update: (spec) => limiter.update(namedSpec(spec, 'own')),
    flush: () => microtasks(6),
  }
  try {
    return await playSettled(random, subject, plan, random.integer(STEPS.least, STEPS.most))
  } finally {
    limiter.close()
  }
}

/** A policy of a name, whatever its numbers. */
export function namedSpec(spec: PolicySpec, name: string): Policy {
  return policyOf(spec as SinglePolicySpec, { name })
}
