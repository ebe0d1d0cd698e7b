import assert from 'node:assert/strict'
import type { RateLimiterRes } from 'sluicegate/rate-limiter-flexible'
import { Random } from 'sluicegate-testkit'
import { type FlexibleLimiter, FlexibleTwins, type Outcome } from './flexible-twins.js'

const DURATION_S = 10
const BLOCK_S = 2 * DURATION_S
const KEYS = ['ada', 'bob', 'eve']
const ROUNDS = 6
const CALLS = 40

/** What is known of a key, to leave out what the two do differently. */
interface KeyPast {
  /** The points that theirs counts, and by which ours is at most beyond its own. */
  consumed: number
  /** Where its window begins with ours: else their resets are apart. */
  readonly isAligned: boolean
  isBlocked: boolean
  /** Theirs has counted points that it denied. */
  hasDenied: boolean
  /** It has denied some of which there was a part: ours still has that. */
  isApart: boolean
}

/** Calls that both have to answer alike, drawn from a seed. @returns how many were denied. */
export async function compareHistories(seed: number): Promise<number> {
  const random = new Random(seed)
  const points = random.integer(1, 8)
  const blocks = random.chance(0.5)
  const twins = new FlexibleTwins({ points, duration: DURATION_S, ...(blocks && { blockDuration: BLOCK_S }) })
  const history = new FlexibleHistory(twins, random, points, blocks)
  try {
    for (let round = 0; round < ROUNDS; round++) await history.round()
  } catch (error) {
    throw new Error(`seed ${seed}, ${history.calls} calls: ${history.last}`, { cause: error })
  } finally {
    twins.stop()
  }
  return history.denials
}

class FlexibleHistory {
  calls = 0
  denials = 0
  last = ''
  private readonly twins: FlexibleTwins
  private readonly random: Random
  private readonly points: number
  private readonly blocks: boolean
  private readonly past = new Map<string, KeyPast>()

  constructor(twins: FlexibleTwins, random: Random, points: number, blocks: boolean) {
    this.twins = twins
    this.random = random
    this.points = points
    this.blocks = blocks
  }

  /** Calls within one window. */
  async round(): Promise<void> {
    const { random, twins } = this
    for (let i = 0; i < CALLS; i++) {
      await this.call(random.pick(KEYS))
      if (random.chance(0.3)) twins.advance(random.integer(0, Math.floor((DURATION_S * 1000 - twins.intoWindowMs - 1) / 4)))
    }
    twins.leave()
    this.past.clear()
  }

  private async call(key: string): Promise<void> {
    const { random, points } = this
    const past = this.past.get(key)
    const amount = random.integer(1, points)
    const verb = random.pick(['consume', 'consume', 'consume', 'consume', 'penalty', 'reward', 'block', 'get', 'delete'] as const)
    if (past?.isApart && verb !== 'delete' && verb !== 'block') return
    // Theirs goes below zero, and counts what it denied.
    if (verb === 'reward' && (past === undefined || past.isBlocked || past.hasDenied || amount >= past.consumed)) return
    // Theirs then blocks at no denial any more.
    if (verb === 'penalty' && this.blocks && (past?.consumed ?? 0) + amount > points) return
    if (verb === 'block' && !random.chance(0.3)) return
    this.calls++
    this.last = `${verb} ${key} ${amount}`
    const [theirs, ours] = await this.twins.both((limiter) => asked(limiter, verb, key, amount))
    this.compare(theirs, ours, past, verb)
    this.note(theirs, ours, key, verb)
  }

  private compare(theirs: Outcome, ours: Outcome, past: KeyPast | undefined, verb: string): void {
    assert.deepEqual(Object.keys(ours), Object.keys(theirs))
    const [a, b] = [answerOf(theirs), answerOf(ours)]
    if (a === null || b === null || typeof a === 'boolean' || typeof b === 'boolean') {
      assert.equal(b, a)
      return
    }
    const { points } = this
    if ('denied' in theirs) this.denials++
    // What is left of a denial is there still, and here only.
    if (!('denied' in ours) || b.remainingPoints === 0) assert.equal(b.remainingPoints, a.remainingPoints)
    if (a.consumedPoints < points) assert.equal(b.consumedPoints, a.consumedPoints)
    else assert.ok(b.consumedPoints >= points)
    if (a.consumedPoints > points) assert.ok(b.consumedPoints > points)
    // Theirs calls the points of a new block the first ones.
    if (verb === 'consume' && 'passed' in theirs) assert.equal(b.isFirstInDuration, a.isFirstInDuration)
    if (past?.isAligned || past?.isBlocked || this.twins.intoWindowMs === 0) assert.equal(b.msBeforeNext, a.msBeforeNext)
  }

  private note(theirs: Outcome, ours: Outcome, key: string, verb: string): void {
    if (verb === 'delete') this.past.delete(key)
    const [a, b] = [answerOf(theirs), answerOf(ours)]
    if (a === null || b === null || typeof a === 'boolean' || typeof b === 'boolean') return
    const known = this.past.get(key)
    const isDenied = 'denied' in theirs
    const isBlocked = known?.isBlocked === true || verb === 'block' || (isDenied && this.blocks)
    this.past.set(key, {
      consumed: a.consumedPoints,
      isAligned: known?.isAligned ?? this.twins.intoWindowMs === 0,
      isBlocked,
      hasDenied: known?.hasDenied === true || isDenied,
      isApart: !isBlocked && (known?.isApart === true || (isDenied && b.remainingPoints > 0)),
    })
  }
}

function asked(limiter: FlexibleLimiter, verb: string, key: string, amount: number): Promise<RateLimiterRes | boolean | null> {
  switch (verb) {
    case 'consume':
      return limiter.consume(key, amount)
    case 'penalty':
      return limiter.penalty(key, amount)
    case 'reward':
      return limiter.reward(key, amount)
    case 'block':
      return limiter.block(key, BLOCK_S)
    case 'get':
      return limiter.get(key)
    default:
      return limiter.delete(key)
  }
}

function answerOf(outcome: Outcome): RateLimiterRes | boolean | null {
  return 'denied' in outcome ? outcome.denied : outcome.passed
}
