import { Expiring } from './deadlines.js'
import type { CancelSignal } from './cancel-signal.js'

/** What becomes of a call, told once. */
export interface CallListener<Answer> {
  answered(call: PendingCall<Answer>, answer: Answer): void
  failed(call: PendingCall<Answer>, error: unknown): void
  timedOut(call: PendingCall<Answer>): void
}

/** One call on its way: it ends by its answer, an error, or its time; what comes of it after that is late. */
export class PendingCall<Answer> extends Expiring implements CancelSignal {
  readonly server: string | undefined
  readonly round: number
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
  private readonly outcome: CallListener<Answer>
  private readonly late: (answer: Answer) => void
  private readonly inTime: (answer: Answer) => void
  private listener: (() => void) | undefined
  private isOver = false
  /** Given up: nobody waits for it. */
  aborted = false

  constructor(
    outcome: CallListener<Answer>,
    server: string | undefined,
    round: number,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
    late: (answer: Answer) => void,
    inTime: (answer: Answer) => void,
  ) {
    super()
    this.outcome = outcome
    this.server = server
    this.round = round
    this.resolve = resolve
    this.reject = reject
    this.late = late
    this.inTime = inTime
  }

  answer(answer: Answer): void {
    if (this.isOver) {
      this.late(answer)
      return
    }
    this.isOver = true
    this.inTime(answer)
    this.outcome.answered(this, answer)
  }

  fail(error: unknown): void {
    if (this.isOver) return
    this.isOver = true
    this.outcome.failed(this, error)
  }

  override expire(): void {
    this.isOver = true
    this.aborted = true
    this.outcome.timedOut(this)
    this.listener?.()
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.listener = listener
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    if (this.listener === listener) this.listener = undefined
  }
}
