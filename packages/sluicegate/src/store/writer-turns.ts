/** Keys of which it is known that other processes write them; beyond that all are forgotten. */
const MOST_KEYS = 1000
/** A swap that was lost tells of writers for this long. */
const CONTENDED_MS = 1000
const LONGEST_PAUSE_MS = 100
const LEAST_TURN_MS = 4

interface Contended {
  readonly untilMs: number
  /** Others have their turn until then. */
  readonly restUntilMs: number
}

/**
 * Turns among the processes that write one key. None can be given a place in a queue that it cannot write; but who has won can wait. So after a
 * swap that was made, a process that has lost one of late, on a state of that moment, leaves the key to the others for as long as each of them needs for
 * one, while its own calls gather; who has lost tries again at once.
 */
export class WriterTurns {
  private readonly nowMs: () => number
  private readonly keys = new Map<string, Contended>()

  constructor(nowMs: () => number) {
    this.nowMs = nowMs
  }

  /** How long the keys are left to others. */
  pauseMs(keys: readonly string[]): number {
    if (this.keys.size === 0) return 0
    let untilMs = 0
    for (const key of keys) untilMs = Math.max(untilMs, this.keys.get(key)?.restUntilMs ?? 0)
    return Math.max(0, untilMs - this.nowMs())
  }

  /** @param writers other processes that wrote one of the keys of late. */
  swapped(keys: readonly string[], isMade: boolean, tookMs: number, writers: number): void {
    if (isMade && this.keys.size === 0) return
    const nowMs = this.nowMs()
    for (const key of keys) {
      if (!isMade) {
        if (this.keys.size >= MOST_KEYS) this.keys.clear()
        this.keys.set(key, { untilMs: nowMs + CONTENDED_MS, restUntilMs: 0 })
        continue
      }
      const contended = this.keys.get(key)
      if (contended === undefined) continue
      if (contended.untilMs <= nowMs) this.keys.delete(key)
      else {
        // For one that is further away than this one too, and with jitter, so that processes do not stay in step.
        const restMs = Math.min(LONGEST_PAUSE_MS, writers * Math.max(tookMs, LEAST_TURN_MS) * (1 + Math.random()))
        this.keys.set(key, { ...contended, restUntilMs: nowMs + restMs })
      }
    }
  }
}
