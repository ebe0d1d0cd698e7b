import assert from 'node:assert/strict'
import type { RateLimiterRes } from 'sluicegate/rate-limiter-flexible'
import { Random } from 'sluicegate-testkit'
import { type FlexibleLimiter, FlexibleTwins, type Outcome, type Twins } from './flexible-twins.js'
import { isBlocked, type KeyPast, pastInNextWindow } from './key-past.js'

/** Of the limiters on one clock, in seconds. */
const DURATION_S = 10
/** Of a block at a denial, in units. */
const BLOCK = { least: 1, most: 6 }
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

/** Options that both take. */
export interface DrawnOptions {
  readonly points: number
  readonly duration: number
  readonly blockDuration?: number
}

/** Where histories happen. */
export interface HistoryPlace {
  /** Of a window, in seconds; blocks are this and some times as long. */
  readonly duration: number
  readonly rounds: number
  /** How many calls are drawn in a round. */
  readonly calls: number
  open(options: DrawnOptions): Promise<Twins>
}

/** In memory, on a clock that is set. */
const MEMORY: HistoryPlace = { duration: DURATION_S, rounds: ROUNDS, calls: CALLS, open: async (options) => new FlexibleTwins(options) }

/** Calls that both have to answer alike, drawn from a seed. @returns how many there were, and how many were denied. */
export async function compareHistories(seed: number, place = MEMORY): Promise<{ readonly calls: number; readonly denials: number }> {
  const random = new Random(seed)
  const points = random.integer(1, 8)
  const { duration, rounds } = place
  const blockDuration = random.chance(0.5) ? random.integer(BLOCK.least, BLOCK.most * duration) : 0
  // A second is too short for what is not on a clock that is set.
  const blockS = duration > DURATION_S && blockDuration > 0 ? Math.max(blockDuration, duration) : blockDuration
  const twins = await place.open({ points, duration, ...(blockS > 0 && { blockDuration: blockS }) })
  const history = new FlexibleHistory({ place, twins, random, points, blockDuration: blockS })
  try {
    for (let round = 0; round < rounds; round++) await history.round()
  } catch (error) {
    throw new Error(`seed ${seed}, ${history.calls} calls: ${history.last}`, { cause: error })
  } finally {
    await twins.stop()
  }
  return history
}

/** What a history is drawn for. */
interface HistorySetting {
  readonly place: HistoryPlace
  readonly twins: Twins
  readonly random: Random
  readonly points: number
  /** In seconds, 0 for none. */
  readonly blockDuration: number
}

class FlexibleHistory {
  calls = 0
  denials = 0
  last = ''
  private readonly at: HistorySetting
  private readonly past = new Map<string, KeyPast>()

  constructor(at: HistorySetting) {
    this.at = at
  }

  /** Calls within one window. */
  async round(): Promise<void> {
    const { random, twins, place } = this.at
    const { calls, duration } = place
    for (let i = 0; i < calls; i++) {
      await this.call(this.drawn())
      if (random.chance(0.3)) twins.advance(random.integer(0, Math.floor((duration * 1000 - twins.intoWindowMs - 1) / 4)))
    }
    twins.leave(random.integer(WINDOWS_AHEAD.least, WINDOWS_AHEAD.most))
    for (const [key, past] of this.past) this.keep(key, pastInNextWindow(past, twins.nowMs))
  }

  private drawn(): Call {
    const { random, points, place } = this.at
    const { duration } = place
    const key = random.pick(KEYS)
    const amount = random.integer(1, points)
    return {
      verb: random.pick(VERBS),
      key,
      amount,
      seconds: random.integer(duration > DURATION_S ? duration : 1, 2 * BLOCK.most * duration),
    }
  }

  private async call(call: Call): Promise<void> {
    const past = this.pastOf(call.key)
    if (!this.isAlike(call, past) || (call.verb === 'block' && !this.at.random.chance(0.3))) return
    this.calls++
    this.last = Object.values(call).join(' ')
    const [theirs, ours] = await this.at.twins.both((limiter) => asked(limiter, call))
    this.compare(theirs, ours, past, call)
    this.note(theirs, ours, past, call)
  }

  /** What is known of a key now: when a block has ended of which nothing else is known, the key is full. */
  private pastOf(key: string): KeyPast | undefined {
    const past = this.past.get(key)
    if (past?.blockEndsMs === undefined || isBlocked(past, this.at.twins.nowMs)) return past
    this.past.delete(key)
    return undefined
  }

  private isAlike({ verb, amount, seconds }: Call, past: KeyPast | undefined): boolean {
    const { nowMs } = this.at.twins
    if (past?.isApart && verb !== 'delete' && verb !== 'block') return false
    const blockEndsMs = isBlocked(past, nowMs) ? past?.blockEndsMs : undefined
    switch (verb) {
      case 'reward':
        // Theirs goes below zero, and counts what it denied.
        return past !== undefined && blockEndsMs === undefined && !past.hasDenied && amount < past.consumed
      case 'penalty':
        // Theirs then blocks at no denial any more.
        return blockEndsMs !== undefined || this.at.blockDuration === 0 || (past?.consumed ?? 0) + amount <= this.at.points
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
    const { points, twins, blockDuration } = this.at
    const isDenied = 'denied' in theirs
    if (isDenied) this.denials++
    // What is left of a denial is there still, and here only.
    if (!('denied' in ours) || b.remainingPoints === 0) assert.equal(b.remainingPoints, a.remainingPoints)
    // What it is after a penalty or a reward is reported as it is, up to the deepest debt.
    const isCounted = (verb === 'penalty' || verb === 'reward') && !isBlocked(past, twins.nowMs) && past?.hasDenied !== true
    if (isCounted && a.consumedPoints <= DEEPEST * points) assert.equal(b.consumedPoints, a.consumedPoints)
    // All of them are reported as one more where no denial would show that a key is locked out.
    if (a.consumedPoints < points || (a.consumedPoints === points && blockDuration > 0)) assert.equal(b.consumedPoints, a.consumedPoints)
    else assert.ok(b.consumedPoints >= points)
    if (a.consumedPoints > points) assert.ok(b.consumedPoints > points)
    // Theirs calls the points of a new block the first ones.
    if (verb === 'consume' && 'passed' in theirs) assert.equal(b.isFirstInDuration, a.isFirstInDuration)
    const blocks = isBlocked(past, twins.nowMs) || verb === 'block' || (isDenied && blockDuration > 0)
    if (blocks || past?.isAligned || twins.intoWindowMs === 0) {
      assert.ok(Math.abs(b.msBeforeNext - a.msBeforeNext) <= twins.mostMsApart, `${b.msBeforeNext} ms, ${a.msBeforeNext} there`)
    }
  }

  private note(theirs: Outcome, ours: Outcome, past: KeyPast | undefined, { verb, key, seconds }: Call): void {
    if (verb === 'delete') this.past.delete(key)
    const [a, b] = [answerOf(theirs), answerOf(ours)]
    if (a === null || b === null || typeof a === 'boolean' || typeof b === 'boolean') return
    const { nowMs, intoWindowMs } = this.at.twins
    const isDenied = 'denied' in theirs
    const wasBlocked = isBlocked(past, nowMs)
    const newBlockMs = verb === 'block' ? seconds * 1000 : isDenied && !wasBlocked ? this.at.blockDuration * 1000 : 0
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
