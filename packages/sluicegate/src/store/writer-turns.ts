import { BoundedMap } from '../bounded-map.js'

/** Keys of which turns are known, those written last. */
const MOST_KEYS = 2000
/** What tells of other writers counts for this long. */
const CONTENDED_MS = 1000
/** A swap that is lost so soon after the last tells of others. */
const SOON_MS = 50
/** Who writes a key without a rest for so long, and so many turns, leaves it to others once, though none is seen. */
const ALONE_MS = 50
const ALONE_TURNS = 8
const LONGEST_PAUSE_MS = 100
const LEAST_TURN_MS = 4
/**
 * Where calls cannot wait for a turn of each other process, this part of one: those that lost try again as soon as they are answered, so each time they come
 * so much closer to the winner's next swap, and are before it after a few.
 */
const OF_A_TURN = 1 / 8
/** Turns of others that take this part of the time leave no room for one that does not rest. */
const CROWDED = 0.9

/** A swap that was answered. */
export interface SwapEnd {
  readonly isMade: boolean
  readonly tookMs: number
  /** Other processes that wrote one of the keys of late. */
  readonly writers: number
  /** It was for leases alone: these are asked for now and then. */
  readonly isLease: boolean
  /** Which write it is of each key. */
  readonly numbers: readonly number[]
}

interface KeyTurns {
  /** Others are known to write it until then. */
  readonly contendedUntilMs: number
  /** This process writes it without a rest since then; its last swap was answered. */
  readonly sinceMs: number
  readonly answeredMs: number
  /** Others have their turn until then. */
  readonly restUntilMs: number
  /** The last swap that was made: which write it was, and when. */
  readonly madeNumber: number
  readonly madeMs: number
}

/**
 * Turns among the processes that write one key. None can be given a place in a queue that it cannot write; but who has won can wait, and who has
 * lost tries again at once:
 *
 * | after a swap that was made, a process that | leaves the key, while its own calls gather |
 * | --- | --- |
 * | lost one of late, soon after its last, or has since seen writes of others in the value | to each of them for one swap; of leases only where theirs fill the time |
 * | sees no others | to one of them, each time it has written without a rest for a while: who always loses leaves no mark to be seen by |
 */
export class WriterTurns {
  private readonly nowMs: () => number
  private readonly mostMs: number
  private readonly turns = new BoundedMap<string, KeyTurns>(MOST_KEYS)

  /** @param mostMs that a rest and a swap may take: who comes meanwhile waits for the swap before them, too. */
  constructor(nowMs: () => number, mostMs: number) {
    this.nowMs = nowMs
    this.mostMs = mostMs
  }

  /** How long the keys are left to others. */
  pauseMs(keys: readonly string[]): number {
    const nowMs = this.nowMs()
    let untilMs = nowMs
    for (const key of keys) {
      const { answeredMs, restUntilMs } = this.turns.get(key) ?? NO_TURNS
      // A clock that has stepped back says nothing of when the rest began.
      if (answeredMs <= nowMs) untilMs = Math.max(untilMs, restUntilMs)
    }
    return untilMs - nowMs
  }

  swapped(keys: readonly string[], { isMade, tookMs, writers, isLease, numbers }: SwapEnd): void {
    const nowMs = this.nowMs()
    // Enough for one that is further away than this one too.
    const turnMs = Math.max(tookMs, LEAST_TURN_MS)
    const sentMs = nowMs - tookMs
    for (const [i, key] of keys.entries()) {
      const before = this.turns.get(key) ?? NO_TURNS
      const { contendedUntilMs, sinceMs, answeredMs } = before
      const madeNumber = numbers[i] as number
      const isTold = isMade ? writers > 0 && contendedUntilMs > nowMs : sentMs - answeredMs < SOON_MS
      const next = {
        contendedUntilMs: isTold ? nowMs + CONTENDED_MS : contendedUntilMs,
        sinceMs: sentMs - answeredMs < turnMs ? sinceMs : nowMs,
        answeredMs: nowMs,
        ...(isMade ? { madeNumber, madeMs: nowMs } : { madeNumber: before.madeNumber, madeMs: before.madeMs }),
      }
      const isContended = next.contendedUntilMs > nowMs
      const isAlone = nowMs - next.sinceMs >= Math.max(ALONE_MS, ALONE_TURNS * turnMs)
      // A store that takes no time is this process's own.
      const isDue = isContended ? !isLease || isCrowded(before, madeNumber, nowMs, turnMs) : isAlone
      const mustRest = isMade && tookMs > 0 && isDue
      const restMs = mustRest ? this.restMs(isContended ? Math.max(1, writers) : 1, turnMs) : 0
      this.turns.set(key, { ...next, restUntilMs: nowMs + restMs })
    }
  }

  /** With jitter, so that processes do not stay in step. */
  private restMs(turns: number, turnMs: number): number {
    const mostMs = Math.min(LONGEST_PAUSE_MS, this.mostMs - turnMs)
    if (turns * turnMs > mostMs) return OF_A_TURN * turns * turnMs * (0.75 + Math.random() / 2)
    return Math.min(mostMs, turns * turnMs * (1 + Math.random()))
  }
}

const NO_TURNS: KeyTurns = {
  contendedUntilMs: 0,
  sinceMs: 0,
  answeredMs: Number.NEGATIVE_INFINITY,
  restUntilMs: 0,
  madeNumber: 0,
  madeMs: Number.NEGATIVE_INFINITY,
}

/** Whether the writes of others since the last of this process filled the time, as far as is known. */
function isCrowded({ madeNumber, madeMs }: KeyTurns, number: number, nowMs: number, turnMs: number): boolean {
  const others = number - madeNumber - 1
  return madeNumber === 0 || others < 0 || others * turnMs >= CROWDED * (nowMs - madeMs)
}
