import type { HoldsById } from 'sluicegate'

type HoldAnswer = Awaited<ReturnType<HoldsById['add']>>

/** The first and the longest pause between two attempts: any process may free what a piece waits for. */
const FIRST_MS = 20
const LAST_MS = 1_000

interface Piece {
  readonly cost: number
  readonly untilMs: number
  /** When it asks again, while it is the first. */
  nextMs: number
  wake(): void
}

/** What waits of a key: tokens, until the first of it asks again, and until the last of it has given up. */
export interface WaitingAhead {
  readonly cost: number
  readonly nextMs: number
  readonly lastMs: number
}

/** Pieces of work at a store that wait for room in this process: of each key one after another, in the order in which they came. */
export class WaitingPieces {
  readonly #queues = new Map<string, Piece[]>()

  /** Undefined: nothing waits. */
  ahead(keyName: string): WaitingAhead | undefined {
    const queue = this.#queues.get(keyName)
    if (queue === undefined) return undefined
    const nowMs = performance.now()
    let [cost, untilMs] = [0, nowMs]
    for (const piece of queue) {
      cost += piece.cost
      untilMs = Math.max(untilMs, piece.untilMs)
    }
    return { cost, nextMs: Math.max(0, (queue[0]?.nextMs ?? nowMs) - nowMs), lastMs: untilMs - nowMs }
  }

  /** Something of the key is free: the first of its queue tries at once. */
  wake(keyName: string): void {
    this.#queues.get(keyName)?.[0]?.wake()
  }

  /** Says a piece that was refused again, until it has an answer or its time is over. */
  async wait(keyName: string, waitMs: number, cost: number, refused: HoldAnswer, say: () => Promise<HoldAnswer>): Promise<HoldAnswer> {
    const nowMs = performance.now()
    const untilMs = nowMs + waitMs
    const queue = this.#queues.get(keyName) ?? []
    this.#queues.set(keyName, queue)
    const piece: Piece = { cost, untilMs, nextMs: nowMs, wake: () => undefined }
    queue.push(piece)
    let answer = refused
    let pauseMs = FIRST_MS
    try {
      while (mayPass(answer)) {
        const leftMs = untilMs - performance.now()
        if (leftMs <= 0) break
        const restMs = queue[0] === piece ? Math.min(leftMs, pauseMs, answer.decision.retryAfterMs) : leftMs
        piece.nextMs = performance.now() + restMs
        await woken(piece, restMs)
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
