import assert from 'node:assert/strict'
import type { RateLimiterRes } from 'sluicegate/rate-limiter-flexible'
import { Random } from 'sluicegate-testkit'
import { type FlexibleLimiter, FlexibleTwins, type Outcome } from './flexible-twins.js'
import { isBlocked, type KeyPast, pastInNextWindow } from './key-past.js'

const DURATION_S = 10
const BLOCK_S = { least: 1, most: 6 * DURATION_S }
const KEYS = ['ada', 'bob', 'eve']
/** Times all points, down to which penalties count here. */
const DEEPEST = 11
const ROUNDS = 8
const CALLS = 40
/** A window of theirs begins with a request in one of ours, and ends in the next one. */
const WINDOWS_AHEAD = { least: 2, most: 4 }

/** What was drawn: with the history of its key it decides whether both have to answer alike. */
interface Call {
  readonly verb: 'consume' | 'penalty' | 'reward' | 'block' | 'get' | 'delete'
  readonly key: string
  readonly amount: number
  /** Of a block. */
  readonly seconds: number
}

const VERBS: readonly Call['verb'][] = ['consume', 'consume', 'consume', 'consume', 'penalty', 'reward', 'block', 'get', 'delete']

/** Calls that both have to answer alike, drawn from a seed. @returns how many were denied. */
export async function compareHistories(seed: number): Promise<number> {
  const random = new Random(seed)
  const points = random.integer(1, 8)
  const blockDuration = random.chance(0.5) ? random.integer(BLOCK_S.least, BLOCK_S.most) : 0
  const twins = new FlexibleTwins({ points, duration: DURATION_S, ...(blockDuration > 0 && { blockDuration }) })
  const history = new FlexibleHistory(twins, random, points, blockDuration)
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
  /** In seconds, 0 for none. */
  private readonly blockDuration: number
  private readonly past = new Map<string, KeyPast>()

  constructor(twins: FlexibleTwins, random: Random, points: number, blockDuration: number) {
    this.twins = twins
    this.random = random
    this.points = points
    this.blockDuration = blockDuration
  }

  /** Calls within one window. */
  async round(): Promise<void> {
    const { random, twins } = this
    for (let i = 0; i < CALLS; i++) {
      await this.call(this.drawn())
      if (random.chance(0.3)) twins.advance(random.integer(0, Math.floor((DURATION_S * 1000 - twins.intoWindowMs - 1) / 4)))
    }
    twins.leave(random.integer(WINDOWS_AHEAD.least, WINDOWS_AHEAD.most))
    for (const [key, past] of this.past) this.keep(key, pastInNextWindow(past, twins.nowMs))
  }

  private drawn(): Call {
    const { random, points } = this
    const key = random.pick(KEYS)
    const amount = random.integer(1, points)
    return { verb: random.pick(VERBS), key, amount, seconds: random.integer(1, 2 * BLOCK_S.most) }
  }

  private async call(call: Call): Promise<void> {
    const past = this.pastOf(call.key)
    if (!this.isAlike(call, past) || (call.verb === 'block' && !this.random.chance(0.3))) return
    this.calls++
    this.last = Object.values(call).join(' ')
    const [theirs, ours] = await this.twins.both((limiter) => asked(limiter, call))
    this.compare(theirs, ours, past, call)
    this.note(theirs, ours, past, call)
  }

  /** What is known of a key now: when a block has ended of which nothing else is known, the key is as good as new. */
  private pastOf(key: string): KeyPast | undefined {
    const past = this.past.get(key)
    if (past?.blockEndsMs === undefined || isBlocked(past, this.twins.nowMs)) return past
    this.past.delete(key)
    return undefined
  }

  private isAlike({ verb, amount, seconds }: Call, past: KeyPast | undefined): boolean {
    const { nowMs } = this.twins
    if (past?.isApart && verb !== 'delete' && verb !== 'block') return false
    const blockEndsMs = isBlocked(past, nowMs) ? past?.blockEndsMs : undefined
    switch (verb) {
      case 'reward':
        // Theirs goes below zero, and counts what it denied.
        return past !== undefined && blockEndsMs === undefined && !past.hasDenied && amount < past.consumed
      case 'penalty':
        // Theirs then blocks at no denial any more.
        return blockEndsMs !== undefined || this.blockDuration === 0 || (past?.consumed ?? 0) + amount <= this.points
      case 'block':
        // Of two the later counts there, and the longer here.
        return nowMs + seconds * 1000 >= (blockEndsMs ?? 0)
      default:
        return true
    }
  }

  private compare(theirs: Outcome, ours: Outcome, past: KeyPast | undefined, { verb }: Call): void {
    assert.deepEqual(Object.keys(ours), Object.keys(theirs))
    const [a, b] = [answerOf(theirs), answerOf(ours)]
    if (a === null || b === null || typeof a === 'boolean' || typeof b === 'boolean') {
      assert.equal(b, a)
      return
    }
    const { points, twins } = this
    const isDenied = 'denied' in theirs
    if (isDenied) this.denials++
    // What is left of a denial is there still, and here only.
    if (!('denied' in ours) || b.remainingPoints === 0) assert.equal(b.remainingPoints, a.remainingPoints)
    // What it is after a penalty or a reward is told as it is, up to the deepest debt.
    const isCounted = (verb === 'penalty' || verb === 'reward') && !isBlocked(past, twins.nowMs) && past?.hasDenied !== true
    if (isCounted && a.consumedPoints <= DEEPEST * points) assert.equal(b.consumedPoints, a.consumedPoints)
    // All of them are told as one more where no denial would show that a key is locked out.
    if (a.consumedPoints < points || (a.consumedPoints === points && this.blockDuration > 0))
      assert.equal(b.consumedPoints, a.consumedPoints)
    else assert.ok(b.consumedPoints >= points)
    if (a.consumedPoints > points) assert.ok(b.consumedPoints > points)
    // Theirs calls the points of a new block the first ones.
    if (verb === 'consume' && 'passed' in theirs) assert.equal(b.isFirstInDuration, a.isFirstInDuration)
    const blocks = isBlocked(past, twins.nowMs) || verb === 'block' || (isDenied && this.blockDuration > 0)
    if (blocks || past?.isAligned || twins.intoWindowMs === 0) assert.equal(b.msBeforeNext, a.msBeforeNext)
  }

  private note(theirs: Outcome, ours: Outcome, past: KeyPast | undefined, { verb, key, seconds }: Call): void {
    if (verb === 'delete') this.past.delete(key)
    const [a, b] = [answerOf(theirs), answerOf(ours)]
    if (a === null || b === null || typeof a === 'boolean' || typeof b === 'boolean') return
    const { nowMs, intoWindowMs } = this.twins
    const isDenied = 'denied' in theirs
    const wasBlocked = isBlocked(past, nowMs)
    const newBlockMs = verb === 'block' ? seconds * 1000 : isDenied && !wasBlocked ? this.blockDuration * 1000 : 0
    const blockEndsMs = newBlockMs > 0 ? nowMs + newBlockMs : past?.blockEndsMs
    this.past.set(key, {
      consumed: a.consumedPoints,
      isAligned: past?.isAligned ?? intoWindowMs === 0,
      blockEndsMs,
      hasDenied: past?.hasDenied === true || isDenied,
      isApart: blockEndsMs === undefined && (past?.isApart === true || (isDenied && b.remainingPoints > 0)),
    })
  }

  private keep(key: string, past: KeyPast | undefined): void {
    if (past === undefined) this.past.delete(key)
    else this.past.set(key, past)
  }
}

function asked(limiter: FlexibleLimiter, { verb, key, amount, seconds }: Call): Promise<RateLimiterRes | boolean | null> {
  switch (verb) {
    case 'consume':
      return limiter.consume(key, amount)
    case 'penalty':
      return limiter.penalty(key, amount)
    case 'reward':
      return limiter.reward(key, amount)
    case 'block':
      return limiter.block(key, seconds)
    case 'get':
      return limiter.get(key)
    default:
      return limiter.delete(key)
  }
}

function answerOf(outcome: Outcome): RateLimiterRes | boolean | null {
  return 'denied' in outcome ? outcome.denied : outcome.passed
}
