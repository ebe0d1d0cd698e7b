import { readFileSync } from 'node:fs'
import { allOf, createLimiter, type Hold, type Limiter, type ManualClock, manualClock } from 'sluicegate'
import { policyOf } from '../kit.js'
import type { SinglePolicySpec } from '../oracle/oracle.js'
import { Random } from '../random.js'
import { type HoldFault, HoldsOracle } from './holds-oracle.js'

const START_MS = 1_789_000_020_000
const STEPS = 120
/** A table for the few keys of a history: thousands of larger ones are gigabytes until they are collected. */
const MAX_KEYS = 16

/** Where a limiter and the oracle first differ. */
export interface HoldMismatch {
  readonly step: number
  readonly what: string
  readonly limiter: unknown
  readonly oracle: unknown
}

/** Seeds that once found something: `packages/testkit/seeds/holds.json`. */
export function savedHoldSeeds(): readonly number[] {
  const { seeds } = JSON.parse(readFileSync(new URL('../../seeds/holds.json', import.meta.url), 'utf8')) as { seeds: readonly number[] }
  return seeds
}

/**
 * A random history of work that opens, adds, closes and lapses, among takes, penalties, resets and changes of the policy, on one to three levels:
 * the limiter in memory beside {@link HoldsOracle}. @param fault of the oracle.
 */
export function holdMismatch(seed: number, fault?: HoldFault): HoldMismatch | undefined {
  const random = new Random(seed)
  let specs = Array.from({ length: random.integer(1, 3) }, () => randomSpec(random))
  const clock = manualClock(START_MS)
  const limiter = createLimiter(policyOfAll(specs), { clock, maxKeys: MAX_KEYS })
  const oracle = new HoldsOracle(specs, fault)
  const history = new History(random, limiter, oracle, clock, specs.length)
  try {
    for (let step = 0; step < STEPS; step++) {
      if (random.chance(0.02)) {
        specs = specs.map((spec) => otherLimit(random, spec))
        history.update(specs)
        continue
      }
      const mismatch = history.step()
      if (mismatch !== undefined) return { step, ...mismatch }
    }
    return undefined
  } finally {
    limiter.close()
  }
}

type Difference = Omit<HoldMismatch, 'step'>

class History {
  private readonly random: Random
  private readonly limiter: Limiter
  private readonly oracle: HoldsOracle
  private readonly clock: ManualClock
  private readonly levels: number
  private readonly works: { readonly hold: Hold; readonly work: number }[] = []

  constructor(random: Random, limiter: Limiter, oracle: HoldsOracle, clock: ManualClock, levels: number) {
    this.random = random
    this.limiter = limiter
    this.oracle = oracle
    this.clock = clock
    this.levels = levels
  }

  step(): Difference | undefined {
    const { random, limiter, oracle, clock } = this
    const nowMs = clock.nowMs()
    const keys = Array.from({ length: this.levels }, (_, i) => (i === 0 ? 'org' : random.pick(['a', 'b'])))
    const key = this.levels === 1 ? (keys[0] as string) : keys
    const cost = random.magnitude(1, 40)
    const chance = random.fraction()
    if (chance < 0.2) {
      clock.advance(random.chance(0.5) ? random.integer(0, 300) : random.integer(0, 20_000) / 8)
      return undefined
    }
    if (chance < 0.4) {
      const most = random.chance(0.5) ? random.magnitude(1, 100) : Number.POSITIVE_INFINITY
      const request = { expect: cost, most, ttlMs: random.pick([500, 1_000, 3_333]), finishes: random.chance(0.3) }
      const { ttlMs, finishes } = request
      const hold = limiter.open(key, {
        expect: cost,
        ttl: ttlMs,
        over: finishes ? 'finish' : 'cut',
        ...(most < Number.POSITIVE_INFINITY && { most }),
      })
      const expected = oracle.open(keys, request, nowMs)
      if (expected.work !== undefined) this.works.push({ hold, work: expected.work })
      return differing('open', { allowed: hold.allowed, retryAfterMs: hold.retryAfterMs }, withoutWork(expected))
    }
    if (chance < 0.75 && this.works.length > 0) {
      const { hold, work } = random.pick(this.works.slice(-6))
      const piece = random.chance(0.1) ? 0 : random.magnitude(1, 30)
      return (
        differing(`add ${piece}`, hold.add(piece), oracle.add(work, piece, nowMs)) ??
        differing('after add', { used: hold.used, over: hold.over, held: hold.held }, oracle.workOf(work, nowMs))
      )
    }
    if (chance < 0.83 && this.works.length > 0) {
      const { hold, work } = random.pick(this.works.slice(-6))
      const total = random.chance(0.5) ? undefined : random.magnitude(1, 120)
      hold.close(total)
      oracle.close(work, total, nowMs)
      return (
        differing('after close', { used: hold.used, over: hold.over, held: hold.held }, oracle.workOf(work, nowMs)) ??
        this.peeked(key, keys, cost, nowMs)
      )
    }
    if (chance < 0.85) {
      limiter.penalize(key, cost)
      oracle.penalize(keys, cost, nowMs)
    } else if (chance < 0.86) {
      limiter.reset(key)
      oracle.reset(keys, nowMs)
    } else if (chance < 0.95) {
      const { allowed, retryAfterMs } = limiter.take(key, cost)
      return differing(`take ${cost}`, { allowed, retryAfterMs }, oracle.take(keys, cost, nowMs))
    }
    return this.peeked(key, keys, cost, nowMs)
  }

  update(specs: readonly SinglePolicySpec[]): void {
    this.limiter.update(policyOfAll(specs))
    this.oracle.update(specs, this.clock.nowMs())
  }

  private peeked(key: string | readonly string[], keys: readonly string[], cost: number, nowMs: number): Difference | undefined {
    const { allowed, retryAfterMs } = this.limiter.peek(key, cost)
    return differing(`peek ${cost}`, { allowed, retryAfterMs }, this.oracle.peek(keys, cost, nowMs))
  }
}

function withoutWork({ allowed, retryAfterMs }: { allowed: boolean; retryAfterMs: number }): object {
  return { allowed, retryAfterMs }
}

function differing(what: string, limiter: unknown, oracle: unknown): Difference | undefined {
  return isSame(limiter, oracle) ? undefined : { what, limiter, oracle }
}

function isSame(a: unknown, b: unknown): boolean {
  if (typeof a !== 'object' || a === null) return Object.is(a, b)
  return Object.entries(a).every(([name, value]) => Object.is(value, (b as Record<string, unknown>)[name]))
}

function policyOfAll(specs: readonly SinglePolicySpec[]): ReturnType<typeof policyOf> {
  const policies = specs.map((spec, i) => policyOf(spec, { name: `level ${i}` }))
  return policies.length === 1 ? (policies[0] as ReturnType<typeof policyOf>) : allOf(policies)
}

function randomSpec(random: Random): SinglePolicySpec {
  const limit = random.integer(20, 120)
  const windowMs = random.pick([1_000, 2_000, 7_000])
  switch (random.pick(['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log'] as const)) {
    case 'token-bucket':
      return { algorithm: 'token-bucket', limit, windowMs, burst: random.integer(limit, 2 * limit) }
    case 'gcra':
      return { algorithm: 'gcra', limit, windowMs, burst: limit }
    case 'fixed-window':
      return { algorithm: 'fixed-window', limit, windowMs }
    case 'sliding-window':
      return { algorithm: 'sliding-window', limit, windowMs }
    default:
      return { algorithm: 'sliding-log', limit, windowMs }
  }
}

function otherLimit(random: Random, spec: SinglePolicySpec): SinglePolicySpec {
  const limit = random.integer(20, 120)
  return 'burst' in spec ? { ...spec, limit, burst: limit } : { ...spec, limit }
}
