import type { WaitRequest } from '../arguments.js'
import type { Decision } from '../decision/decision.js'
import type { Booking, BookingService } from './reserving.js'

type OnAnswer<Answer extends Decision> = (answer: Answer, booking?: Booking<Answer>) => void

/** One caller of `wait`, until its promise settles. */
export class Waiter<Answer extends Decision> {
  readonly request: WaitRequest
  /** Its place in the order of arrival, over all keys. */
  readonly order: number
  /** The clock reading at which the wait ends. */
  readonly deadlineUs: number
  /** Called once, when the wait ends. */
  onEnd: (() => void) | undefined
  isOver = false
  private readonly onAnswer: OnAnswer<Answer>
  private readonly onError: (reason: unknown) => void
  private quit: (() => void) | undefined

  constructor(
    request: WaitRequest,
    place: { readonly order: number; readonly deadlineUs: number },
    settle: { readonly resolve: OnAnswer<Answer>; readonly reject: (reason: unknown) => void },
  ) {
    this.request = request
    this.order = place.order
    this.deadlineUs = place.deadlineUs
    this.onAnswer = settle.resolve
    this.onError = settle.reject
  }

  /** The waiter waits in a queue from which `quit` removes it. */
  stay(quit: () => void): void {
    this.quit = quit
  }

  /** Removes the waiter from its queue. */
  leave(): void {
    const { quit } = this
    this.quit = undefined
    quit?.()
  }

  /** The queue has removed the waiter itself. */
  called(): void {
    this.quit = undefined
  }

  /** @param booking what was charged, if anything was. */
  resolve(answer: Answer, booking?: Booking<Answer>): void {
    if (this.end()) this.onAnswer(answer, booking)
  }

  reject(reason: unknown): void {
    if (this.end()) this.onError(reason)
  }

  /** Whether a denied booking ends the wait. */
  isDeniedBy({ atUs, bookedUs, maybeSooner }: Booking<Answer>): boolean {
    return atUs === Number.POSITIVE_INFINITY || this.deadlineUs <= bookedUs || (atUs > this.deadlineUs && !maybeSooner)
  }

  /** Ends the wait with a denial. */
  deny(service: BookingService<Answer>): void {
    try {
      this.resolve(service.refuse(this.request.key, this.request.cost))
    } catch (error) {
      this.reject(error)
    }
  }

  private end(): boolean {
    if (this.isOver) return false
    this.isOver = true
    this.leave()
    this.onEnd?.()
    return true
  }
}
