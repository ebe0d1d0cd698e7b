import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import { Middleware } from '../../../sluicegate/dist/middleware/middleware.js'
import { changedPolicy } from '../../../sluicegate/dist/policy/policy.js'
import { createQueue } from '../../../sluicegate/dist/queue/create-queue.js'
import type { RunningJob } from '../../../sluicegate/dist/queue/queue-options.js'
import type { ManualClock } from '../../../sluicegate/dist/time/clock.js'
import { type PlainRequest, plainFacts } from '../adapters/plain-request.js'
import type { Oracle } from '../oracle/oracle.js'
import type { PolicySpec } from '../oracle/policy-spec.js'
import type { Random } from '../random.js'
import { type Account, type NetEvent, NetHistory, type NetTake } from './net-history.js'
import type { SettlingLimiter } from './settling-limiter.js'

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
