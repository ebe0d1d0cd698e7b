import type { HeaderSource } from '../headers/header-source.js'
import type { DispatchController, DispatchHandler, LastingController } from './dispatch-handler.js'
import type { OutboundCall } from './outbound-call.js'
import type { Turn } from './turn.js'

/** Of a response that nobody gets so much is read, for so long, to keep the connection; of another it is closed. */
const MOST_DROPPED_BYTES = 65_536
const MOST_DROPPED_MS = 1_000

/** Whose attempt it is. */
export interface AttemptOwner {
  readonly call: OutboundCall
  /** The caller's. */
  readonly handler: DispatchHandler
  readonly controller: LastingController
  /** What the caller was given at the start, and has kept. */
  readonly context: object
  /** Makes another attempt. */
  again(): void
  fail(error: unknown): void
  after(ms: number, fn: () => void): () => void
}

/**
 * One attempt at a request of undici. Its response goes to the caller, or is dropped, while the next attempt waits for its turn already; its
 * place it keeps until it is through.
 */
export class DispatchAttempt implements DispatchHandler {
  private readonly turn: Turn
  private readonly owner: AttemptOwner
  private state: 'sent' | 'passed on' | 'dropped' | 'over' = 'sent'
  private droppedBytes = 0
  private unset: (() => void) | undefined
  /** Where redirects led, if an interceptor follows them further in; the last one included once it has answered. */
  private hops: readonly unknown[] = []

  constructor(turn: Turn, owner: AttemptOwner) {
    this.turn = turn
    this.owner = owner
  }

  onRequestStart(controller: DispatchController, context: unknown): void {
    const { history } = Object.assign(this.owner.context, context) as { history?: unknown }
    if (Array.isArray(history)) this.hops = history
    this.owner.controller.target = controller
  }

  onRequestUpgrade(_controller: DispatchController, status: number, headers: HeaderSource, socket: unknown): void {
    const { call, handler, controller } = this.owner
    this.state = 'over'
    try {
      call.upgraded(this.turn, { status, headers, isRedirected: this.hops.length > 1 })
    } catch (error) {
      // A hook's: the connection reaches nobody.
      ;(socket as { destroy?(): void }).destroy?.()
      this.owner.fail(error)
      return
    }
    handler.onRequestUpgrade?.(controller, status, headers, socket)
  }

  onResponseStart(controller: DispatchController, status: number, headers: HeaderSource, text?: string): void {
    const { owner } = this
    // With less others are on the way.
    if (status >= 200) {
      let isAgain: boolean
      try {
        isAgain = owner.call.answered(this.turn, { status, headers, isRedirected: this.hops.length > 1 })
      } catch (error) {
        // A hook's, which nobody is asked about: the call has failed.
        this.end()
        controller.abort(error)
        owner.fail(error)
        return
      }
      // In a hook, too, the caller may abort.
      if (this.state === 'over') return
      if (isAgain) {
        this.drop(controller)
        return
      }
      this.state = 'passed on'
    }
    owner.handler.onResponseStart?.(owner.controller, status, headers, text)
  }

  onResponseData(controller: DispatchController, chunk: { readonly length: number }): void {
    if (this.state === 'passed on') this.owner.handler.onResponseData?.(this.owner.controller, chunk)
    if (this.state !== 'dropped') return
    this.droppedBytes += chunk.length
    if (this.droppedBytes > MOST_DROPPED_BYTES) breakOff(controller)
  }

  onResponseEnd(_controller: DispatchController, trailers: unknown): void {
    const isCallers = this.state === 'passed on'
    this.end()
    if (isCallers) this.owner.handler.onResponseEnd?.(this.owner.controller, trailers)
  }

  onResponseError(_controller: DispatchController, error: unknown): void {
    const { state, owner } = this
    this.end()
    if (state === 'passed on') owner.fail(error)
    if (state !== 'sent') return
    try {
      if (owner.call.failed(this.turn, error, this.hops.length > 0)) owner.again()
      else owner.fail(error)
    } catch (thrown) {
      owner.fail(thrown)
    }
  }

  private drop(controller: DispatchController): void {
    this.state = 'dropped'
    // Whoever pauses wants to read the answer at leisure; this one is not it.
    if (controller.paused) controller.resume()
    this.unset = this.owner.after(MOST_DROPPED_MS, () => breakOff(controller))
    this.owner.again()
  }

  private end(): void {
    this.state = 'over'
    this.unset?.()
    this.turn.end()
  }
}

function breakOff(controller: DispatchController): void {
  controller.abort(new Error('not read'))
}
