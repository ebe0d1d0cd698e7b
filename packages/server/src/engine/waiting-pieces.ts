import type { HoldsById } from 'sluicegate'

type HoldAnswer = Awaited<ReturnType<HoldsById['add']>>

/** The first and the longest pause between two attempts: any process may free what a piece waits for. */
const FIRST_MS = 20
const LAST_MS = 1_000

interface Piece {
  wake(): void
}

/** Pieces of work at a store that wait for room in this process: of each key one after another, in the order in which they came. */
export class WaitingPieces {
  readonly #queues = new Map<string, Piece[]>()

  isQueued(keyName: string): boolean {
    return this.#queues.has(keyName)
  }

  /** Something of the key is free: the first of its queue tries at once. */
  wake(keyName: string): void {
    this.#queues.get(keyName)?.[0]?.wake()
  }

  /** Says a piece that was refused again, until it has an answer or its time is over. */
  async wait(keyName: string, waitMs: number, refused: HoldAnswer, say: () => Promise<HoldAnswer>): Promise<HoldAnswer> {
    const untilMs = performance.now() + waitMs
    const queue = this.#queues.get(keyName) ?? []
    this.#queues.set(keyName, queue)
    const piece: Piece = { wake: () => undefined }
    queue.push(piece)
    let answer = refused
    let pauseMs = FIRST_MS
    try {
      while (mayPass(answer)) {
        const leftMs = untilMs - performance.now()
        if (leftMs <= 0) break
        await woken(piece, queue[0] === piece ? Math.min(leftMs, pauseMs, answer.decision.retryAfterMs) : leftMs)
        if (queue[0] !== piece) continue
        answer = await say()
        pauseMs = Math.min(LAST_MS, 1.5 * pauseMs)
      }
      return answer
    } finally {
      queue.splice(queue.indexOf(piece), 1)
      if (queue.length === 0) this.#queues.delete(keyName)
      else this.wake(keyName)
    }
  }
}

function mayPass({ isDone, fault, decision }: HoldAnswer): boolean {
  return !isDone && fault === undefined && decision.retryAfterMs < Number.POSITIVE_INFINITY
}

function woken(piece: Piece, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    piece.wake = () => {
      clearTimeout(timer)
      resolve()
    }
  })
}
