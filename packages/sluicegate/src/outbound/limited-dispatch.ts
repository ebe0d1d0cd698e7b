import { type AttemptOwner, DispatchAttempt } from './dispatch-attempt.js'
import { type Dispatch, type DispatchHandler, type DispatchOptions, LastingController } from './dispatch-handler.js'
import { dispatchRequest } from './dispatch-request.js'
import { copiedInit } from './fetch-arguments.js'
import type { Lines } from './lines.js'
import { OutboundCall } from './outbound-call.js'
import type { OutboundSettings } from './outbound-settings.js'
import type { Turn } from './turn.js'

/** One request of a dispatcher, with all its attempts: between undici and whoever called it. */
export class LimitedDispatch implements AttemptOwner {
  readonly handler: DispatchHandler
  readonly controller: LastingController
  readonly context: object = {}
  call!: OutboundCall
  private readonly dispatch: Dispatch
  private readonly options: DispatchOptions
  private readonly lines: Lines
  private readonly settings: OutboundSettings
  private readonly own = new AbortController()
  private hasFailed = false

  constructor(dispatch: Dispatch, options: DispatchOptions, handler: DispatchHandler, lines: Lines, settings: OutboundSettings) {
    this.dispatch = dispatch
    // Undici reads them when it is called, and a caller may use them again for the next.
    this.options = copiedInit(options) as DispatchOptions
    this.handler = handler
    this.lines = lines
    this.settings = settings
    this.controller = new LastingController(this.own)
  }

  get bodyStallMs(): number {
    return this.settings.bodyStallMs
  }

  start(): void {
    const { signal } = this.own
    try {
      // Before there is a connection, so that whoever called can abort while it waits: undici hands its signals on to the controller.
      this.handler.onRequestStart?.(this.controller, this.context)
      if (signal.aborted) throw signal.reason
      this.call = new OutboundCall(this.lines, this.settings, dispatchRequest(this.options, signal, this.settings.given.priority))
      this.again()
    } catch (error) {
      this.fail(error)
    }
  }

  again(): void {
    void this.attempt()
  }

  aside(ms: number, fn: () => void): () => void {
    return this.lines.aside(ms, fn)
  }

  fail(error: unknown): void {
    if (this.hasFailed) return
    this.hasFailed = true
    this.handler.onResponseError?.(this.controller, error)
  }

  private async attempt(): Promise<void> {
    this.controller.target = undefined
    let turn: Turn | undefined
    try {
      turn = await this.call.turn()
      this.dispatch(this.options, new DispatchAttempt(turn, this))
    } catch (error) {
      turn?.end()
      this.fail(error)
    }
  }
}
