import type { CancelSignal } from '../shared/backend.js'

/** Calls that are sent together. */
const MOST_TOGETHER = 256
/** Calls under way beyond which others wait and go together. More would wait for the processors of the store. */
const MOST_UNDER_WAY = 4

interface Caller<Call, Answer> {
  readonly call: Call
  readonly signal: CancelSignal | undefined
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/**
 * Calls for many keys of one store: one goes at once where few are under way; all that come in one turn of the event loop, or while others
 * are under way, go together. Two calls for one key never do.
 */
export class CallsTogether<Call, Answer> {
  private readonly send: (calls: readonly Call[], signal: CancelSignal | undefined) => Promise<readonly Answer[]>
  private readonly keyOf: (call: Call) => string
  private waiting: Caller<Call, Answer>[] = []
  private underWay = 0
  private isPlanned = false

  /** @param send gives the answers in the order of the calls; `signal` is that of a call that is alone. */
  constructor(
    send: (calls: readonly Call[], signal: CancelSignal | undefined) => Promise<readonly Answer[]>,
    keyOf: (call: Call) => string,
  ) {
    this.send = send
    this.keyOf = keyOf
  }

  ask(call: Call, signal: CancelSignal | undefined): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ call, signal, resolve, reject })
      this.plan()
    })
  }

  /** After the other calls of this turn. */
  private plan(): void {
    if (this.isPlanned || this.underWay >= MOST_UNDER_WAY || this.waiting.length === 0) return
    this.isPlanned = true
    queueMicrotask(() => {
      this.isPlanned = false
      while (this.underWay < MOST_UNDER_WAY && this.waiting.length > 0) void this.sendNext()
    })
  }

  private async sendNext(): Promise<void> {
    const next = this.next()
    if (next.length === 0) return
    this.underWay++
    try {
      const answers = await this.send(
        next.map(({ call }) => call),
        next.length === 1 ? next[0]?.signal : undefined,
      )
      if (answers.length !== next.length) throw new Error(`answered ${answers.length} of ${next.length} calls`)
      for (const [i, { resolve }] of next.entries()) resolve(answers[i] as Answer)
    } catch (error) {
      for (const { reject } of next) reject(error)
    } finally {
      this.underWay--
      this.plan()
    }
  }

  /** The first that wait, each of another key, without those that were given up. */
  private next(): readonly Caller<Call, Answer>[] {
    const next = new Map<string, Caller<Call, Answer>>()
    const later: Caller<Call, Answer>[] = []
    for (const each of this.waiting) {
      const key = this.keyOf(each.call)
      if (each.signal?.aborted === true) each.reject(new Error('given up before it was sent'))
      else if (next.size === MOST_TOGETHER || next.has(key)) later.push(each)
      else next.set(key, each)
    }
    this.waiting = later
    return [...next.values()]
  }
}
