import {
  allOf,
  fixedWindow,
  gcra,
  type Hold,
  type ManualClock,
  manualClock,
  type Policy,
  type SharedLimiter,
  tokenBucket,
} from 'sluicegate'
import { Random } from '../random.js'

type Awaitable<Value> = Value | Promise<Value>
type Work = Hold<Awaitable<boolean>, 'later'>
type StoreMode = 'exact' | 'leased'

const STEPS = 80
const PROCESSES = 3
/** The beginning of an hour, which no history outlasts. */
const START_MS = 1_789_002_000_000
/** What a double rounds. */
const ROUNDING = 1e-6

/** A store that the processes of one history share. */
export interface HistoryStore {
  /** The limiter of one more process. */
  limiter(policy: Policy, mode: StoreMode): SharedLimiter
  /** Until the store has answered what it was asked. */
  settled(): Promise<void>
  end?(): Promise<void>
  /** From now on every answer comes in time. */
  calm?(): void
}

/** How late answers come, in milliseconds: at most so that what they grant has not ended. */
const LATEST_MS = 600

/** A hold lasts 1.5 s, and what was granted of it is charged then. */
const LATEST_REPORT_MS = 2_000

/** Answers that come after a random time, in any order: to be put between a store and the limiters of a history. */
export class LateAnswers {
  private readonly random: Random
  private readonly clock: ManualClock
  /** How many of a limiter come in time after one that does not: its circuit opens after three in a row. */
  private readonly inTime = new WeakMap<object, number>()
  private isCalm = false

  constructor(seed: number, clock: ManualClock) {
    this.random = new Random(seed)
    this.clock = clock
  }

  /** The same answer to a limiter, which may come late. The step was made, or not, when it was asked for. */
  async of<Answer>(limiter: object, answer: Promise<Answer>): Promise<Answer> {
    const inTime = this.inTime.get(limiter) ?? 0
    const ms = this.isCalm || inTime > 0 || this.random.chance(0.6) ? 0 : this.random.integer(1, LATEST_MS)
    this.inTime.set(limiter, ms > 0 ? 2 : inTime - 1)
    if (ms > 0) await new Promise<void>((resolve) => this.clock.after(ms, resolve))
    return answer
  }

  calm(): void {
    this.isCalm = true
  }
}

interface HistoryOptions {
  /** `leased`: takes are of leased tokens, under policies that are leased. */
  readonly mode?: StoreMode
  readonly mostLevels?: number
  /** Whether the plan changes. */
  readonly updates?: boolean
  /** Whether answers may come after their call was given up. */
  readonly isLate?: boolean
}

/** A budget of one key of one level in whole numbers, which counts what was spent when it was. */
class Budget {
  private level: number
  private burst: number
  private atMs = START_MS
  readonly perMs: number

  constructor({ algorithm, limit, burst, windowMs }: Policy) {
    this.perMs = algorithm === 'fixed-window' ? 0 : limit / windowMs
    this.burst = burst
    this.level = burst
  }

  /** What is left after it; below zero it was too much. */
  spend(tokens: number, nowMs: number): number {
    this.level = this.leftAt(nowMs) - tokens
    this.atMs = nowMs
    return this.level
  }

  leftAt(nowMs: number): number {
    return Math.min(this.burst, this.level + (nowMs - this.atMs) * this.perMs)
  }

  /** Another burst. Returns what was spent above it, which counts no more: a store learns of the new one with the next call. */
  update({ burst }: Policy, nowMs: number): number {
    const spent = this.burst - this.leftAt(nowMs)
    this.level = burst - Math.min(burst, spent)
    this.atMs = nowMs
    this.burst = burst
    return Math.max(0, spent - burst)
  }
}

interface Process {
  limiter: SharedLimiter
  works: { readonly work: Work; readonly keys: readonly string[] }[]
}

/**
 * What is wrong with a random history of processes that share a store: they open, add, close, take, are lost, and change to another plan, on one to
 * three levels whose keys they share in part. Undefined when each level of each key was within its policy at every moment, but for what was counted
 * as over, and when what lost processes held is free in the end.
 */
export async function fleetHoldMismatch(
  seed: number,
  open: (clock: ManualClock) => Awaitable<HistoryStore>,
  { mode = 'exact', mostLevels = 3, updates = true, isLate = false }: HistoryOptions = {},
): Promise<string | undefined> {
  const random = new Random(seed)
  const clock = manualClock(START_MS)
  const levels = Math.min(mostLevels, random.pick([1, 1, 2, 3]))
  const store = await open(clock)
  const history = new History(random, clock, store, levels, mode, updates, isLate)
  try {
    const wrong = (await history.run()) ?? (await history.ended())
    return wrong === undefined ? undefined : `seed ${seed}: ${wrong}`
  } finally {
    for (const { limiter } of history.processes) limiter.close()
    await store.end?.()
  }
}

class History {
  readonly processes: Process[]
  private readonly random: Random
  private readonly clock: ManualClock
  private readonly store: HistoryStore
  private parts: readonly Policy[]
  private readonly budgets = new Map<string, Budget>()
  /** Tokens that were beyond the policy, of whichever key, and those that lost processes may have spent, or that an answer may have had which was lost. */
  private over = 0
  private lost = 0
  private forgiven = 0
  private readonly mode: StoreMode
  private readonly updates: boolean
  private readonly isLate: boolean

  constructor(random: Random, clock: ManualClock, store: HistoryStore, levels: number, mode: StoreMode, updates: boolean, isLate: boolean) {
    this.isLate = isLate
    this.mode = mode
    this.updates = updates
    this.random = random
    this.clock = clock
    this.store = store
    this.parts = Array.from({ length: levels }, (_, i) => randomPolicy(random, `level ${i}`, mode))
    this.processes = Array.from({ length: PROCESSES }, () => this.begun())
  }

  async run(): Promise<string | undefined> {
    for (let step = 0; step < STEPS; step++) {
      const wrong = await this.step(this.random.pick(this.processes))
      if (wrong !== undefined) return `step ${step}: ${wrong}`
    }
    return undefined
  }

  /** Once all that lost processes held has ended. */
  async ended(): Promise<string | undefined> {
    for (const { works } of this.processes) for (const { work } of works) await this.passing(work.close())
    this.store.calm?.()
    await this.later(3_000)
    const { limiter } = this.processes[0] as Process
    for (const user of USERS) {
      const keys = this.keysOf(user)
      let decision = await this.passing(limiter.peek(keyOf(keys)))
      // The circuit was open.
      for (let tries = 0; this.isLate && decision?.source === 'outage' && tries < 10; tries++) {
        await this.later(1_000)
        decision = await this.passing(limiter.peek(keyOf(keys)))
      }
      const parts = decision?.parts ?? (decision === undefined ? [] : [decision])
      for (const [i, { remaining }] of parts.entries()) {
        const budget = this.budgetOf(i, keys[i] as string)
        const left = Math.floor(budget.leftAt(this.clock.nowMs()) + ROUNDING)
        const what = `${remaining} are left of ${left} on level ${i} of ${keys[i]}`
        if (remaining > Math.max(0, left + this.forgiven + (this.isLate ? 1 : 0))) return what
        // What lost processes had leased is lost, too.
        // And what was reported late has not refilled meanwhile.
        const missing = this.lost + 1 + (this.isLate ? budget.perMs * LATEST_REPORT_MS : 0)
        if (this.mode === 'exact' && remaining < left - missing) return `${what}, though only ${this.lost} were lost`
      }
    }
    return undefined
  }

  private async step(process: Process): Promise<string | undefined> {
    const { random } = this
    const { limiter, works } = process
    const own = works.length === 0 ? undefined : random.pick(works)
    const keys = this.keysOf(random.pick(USERS))
    switch (random.integer(0, 15)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const over = random.chance(0.25) ? 'finish' : 'cut'
        const work = await this.passing(limiter.open(keyOf(keys), { expect: random.integer(1, 40), ttl: '1s', over }))
        if (work?.allowed) works.push({ work, keys })
        return undefined
      }
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
      case 9: {
        if (own === undefined) return undefined
        const [cost, before] = [random.integer(0, 11), own.work.over]
        if (!(await this.passing(own.work.add(cost)))) return undefined
        this.over += own.work.over - before
        // The piece whose answer was lost is debt, too.
        if (this.isLate) this.lost += own.work.over - before
        return this.spend(own.keys, cost, `an add of ${cost}`)
      }
      case 10:
      case 11: {
        if (own === undefined) return undefined
        const { used, over } = own.work
        await this.passing(own.work.close(random.chance(0.3) ? used + random.integer(0, 9) : undefined))
        this.over += own.work.over - over
        if (this.isLate) this.closedLate(own.work, used)
        works.splice(works.indexOf(own), 1)
        return this.spend(own.keys, own.work.used - used, 'a close')
      }
      case 12: {
        return this.takes(limiter, keys)
      }
      case 13:
        if (this.updates && random.chance(0.3)) await this.update()
        return undefined
      case 14:
        // What an answer has granted that comes after the loss is another matter.
        if (this.isLate) return undefined
        for (const { work } of works) this.lost += work.held
        limiter.close()
        Object.assign(process, this.begun())
        return undefined
      default:
        await this.later(random.integer(0, 499))
        return undefined
    }
  }

  /** One; of leased tokens several at once, or none would be leased ahead. */
  private async takes(limiter: SharedLimiter, keys: readonly string[]): Promise<string | undefined> {
    const most = this.mode === 'exact' ? 20 : 4
    const costs = Array.from({ length: this.mode === 'exact' ? 1 : this.random.integer(1, 8) }, () => this.random.integer(1, most))
    const taken = await this.passing(Promise.all(costs.map((cost) => limiter.take(keyOf(keys), cost))))
    for (const [i, { allowed, source }] of (taken ?? []).entries()) {
      if (source === 'outage') this.lost += costs[i] as number
      const wrong = allowed ? this.spend(keys, costs[i] as number, `a take of ${costs[i]}`) : undefined
      if (wrong !== undefined) return wrong
    }
    return undefined
  }

  /** Where the answer was lost, what is missing of the cost is charged without asking, and once more if the answer alone was. */
  private closedLate(work: Work, usedBefore: number): void {
    const missing = work.used - usedBefore
    this.over += missing
    this.lost += missing
    // What has refilled meanwhile is not owed.
    this.forgiven += missing + work.over
  }

  /** Another plan, everywhere at once. What was held under a larger one is charged all the same. */
  private async update(): Promise<void> {
    const nowMs = this.clock.nowMs()
    this.parts = this.parts.map((policy) => madeOf(policy.algorithm, this.random.integer(60, 240), policy.name, this.mode))
    for (const { limiter, works } of this.processes) {
      limiter.update(policyOf(this.parts))
      for (const { work } of works) this.over += work.held
    }
    for (const [name, budget] of this.budgets) this.lost += budget.update(this.parts[Number(name[0])] as Policy, nowMs)
  }

  private begun(): Process {
    return { limiter: this.store.limiter(policyOf(this.parts), this.mode), works: [] }
  }

  private keysOf(user: string): readonly string[] {
    return ['org', 'team', user].slice(3 - this.parts.length)
  }

  private budgetOf(level: number, key: string): Budget {
    const name = `${level} ${key}`
    const budget = this.budgets.get(name) ?? new Budget(this.parts[level] as Policy)
    this.budgets.set(name, budget)
    return budget
  }

  private spend(keys: readonly string[], tokens: number, what: string): string | undefined {
    for (const [i, key] of keys.entries()) {
      const budget = this.budgetOf(i, key)
      const left = budget.spend(tokens, this.clock.nowMs())
      // What an answer says that was on its way for a while was charged before, and has refilled since.
      const refilled = this.isLate ? budget.perMs * LATEST_REPORT_MS : 0
      if (left < -this.over - refilled - ROUNDING) return `${what} leaves ${left} on level ${i} of ${key}, ${this.over} over`
    }
    return undefined
  }

  /** The value of a promise, for which time goes by where others were first at the store. */
  private async passing<Value>(answer: Awaitable<Value> | undefined): Promise<Value | undefined> {
    let isOver = false
    const ended = Promise.resolve(answer).finally(() => {
      isOver = true
    })
    for (await this.store.settled(); !isOver; await this.store.settled()) this.clock.advance(1)
    return ended
  }

  /** No process stands still for long: what it reports too late has been charged. */
  private async later(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 40) {
      this.clock.advance(Math.min(left, 40))
      await this.store.settled()
    }
  }
}

const USERS = ['ada', 'eve'] as const

function keyOf(keys: readonly string[]): string | readonly string[] {
  return keys.length === 1 ? (keys[0] as string) : keys
}

function policyOf(parts: readonly Policy[]): Policy {
  return parts.length === 1 ? (parts[0] as Policy) : allOf(parts)
}

function randomPolicy(random: Random, name: string, mode: StoreMode): Policy {
  return madeOf(random.pick(['fixed-window', 'token-bucket', 'gcra'] as const), random.integer(60, 240), name, mode)
}

/** Buckets have one rate: between two, a store would go on at the old one until its next call. */
function madeOf(algorithm: Policy['algorithm'], burst: number, name: string, mode: StoreMode): Policy {
  if (algorithm === 'fixed-window') return fixedWindow({ limit: burst, window: '1h', name })
  const rate = mode === 'exact' ? ({ limit: 120, window: '1m' } as const) : ({ limit: 40, window: '1s' } as const)
  return (algorithm === 'gcra' ? gcra : tokenBucket)({ ...rate, burst, name })
}

/** What was asked in this process has been answered. */
export async function turnsPassed(): Promise<void> {
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** The first of so many seeds whose history is wrong, while properties of a prototype are others: a planted fault. */
export async function foundWith(
  prototype: object,
  planted: PropertyDescriptorMap,
  seeds: Iterable<number>,
  mismatch: (seed: number) => Promise<string | undefined>,
): Promise<string | undefined> {
  const before = Object.getOwnPropertyDescriptors(prototype)
  for (const [name, descriptor] of Object.entries(planted)) Object.defineProperty(prototype, name, { ...descriptor, configurable: true })
  try {
    for (const seed of seeds) {
      const found = await mismatch(seed)
      if (found !== undefined) return found
    }
    return undefined
  } finally {
    Object.defineProperties(prototype, before)
  }
}
