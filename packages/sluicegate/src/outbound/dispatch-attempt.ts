import { type Awaitable, isPromise } from '../awaitable.js'
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
  /** A body that nobody reads from for so long gives its place away. */
  readonly bodyStallMs: number
  /** Makes another attempt. */
  again(): void
  fail(error: unknown): void
  aside(ms: number, fn: () => void): () => void
}

/**
 * One attempt at a request of undici. Its response goes to the caller, or is dropped, while the next attempt waits for its turn already; its
 * place it keeps until it is through.
 */
export class DispatchAttempt implements DispatchHandler {
  private readonly turn: Turn
  private readonly owner: AttemptOwner
  private state: 'sent' | 'undecided' | 'passed on' | 'dropped' | 'over' = 'sent'
  /** What came while nobody knew yet whose it is. */
  private readonly unread: (() => void)[] = []
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
    const pass = (): void => owner.handler.onResponseStart?.(owner.controller, status, headers, text)
    // With less others are on the way.
    if (status < 200) {
      pass()
      return
    }
    let isAgain: Awaitable<boolean>
    try {
      isAgain = owner.call.answered(this.turn, { status, headers, isRedirected: this.hops.length > 1 })
    } catch (error) {
      this.abandon(controller, error)
      return
    }
    if (isPromise(isAgain)) this.decideLater(controller, isAgain, pass)
    else this.decide(controller, isAgain, pass)
  }

  onResponseData(controller: DispatchController, chunk: { readonly length: number }): void {
    if (this.state === 'undecided') this.unread.push(() => this.onResponseData(controller, chunk))
    if (this.state === 'passed on') this.owner.handler.onResponseData?.(this.owner.controller, chunk)
    if (this.state !== 'dropped') return
    this.droppedBytes += chunk.length
    if (this.droppedBytes > MOST_DROPPED_BYTES) breakOff(controller)
  }

  onResponseEnd(controller: DispatchController, trailers: unknown): void {
    if (this.state === 'undecided') {
      this.unread.push(() => this.onResponseEnd(controller, trailers))
      return
    }
    this.leave()
    // What it throws undici tells as an error, which is the caller's still.
    if (this.state === 'passed on') this.owner.handler.onResponseEnd?.(this.owner.controller, trailers)
    this.state = 'over'
  }

  onResponseError(controller: DispatchController, error: unknown): void {
    const { state, owner } = this
    if (state === 'undecided' && !owner.controller.aborted) {
      this.unread.push(() => this.onResponseError(controller, error))
      return
    }
    this.end()
    if (state === 'passed on' || state === 'undecided') owner.fail(error)
    if (state !== 'sent') return
    const fail = (thrown: unknown): void => owner.fail(thrown)
    const follow = (isAgain: boolean): void => (isAgain ? owner.again() : owner.fail(error))
    try {
      const isAgain = owner.call.failed(this.turn, error, this.hops.length > 0)
      if (isPromise(isAgain)) isAgain.then(follow).catch(fail)
      else follow(isAgain)
    } catch (thrown) {
      fail(thrown)
    }
  }

  private decideLater(controller: DispatchController, isAgain: Promise<boolean>, pass: () => void): void {
    this.state = 'undecided'
    controller.pause()
    const decide = (isSo: boolean): void => {
      // Aborted meanwhile.
      if (this.state === 'over') return
      this.decide(controller, isSo, pass)
      for (const each of this.unread.splice(0)) each()
      if (!this.owner.controller.isPaused) controller.resume()
    }
    isAgain.then(decide).catch((error) => this.abandon(controller, error))
  }

  private decide(controller: DispatchController, isAgain: boolean, pass: () => void): void {
    // In a hook, too, the caller may abort.
    if (this.state === 'over') return
    if (isAgain) {
      this.drop(controller)
      return
    }
    this.state = 'passed on'
    const { controller: callers } = this.owner
    callers.onPause = (isPaused) => this.stall(isPaused)
    if (callers.isPaused) this.stall(true)
    pass()
  }

  /** The caller's handler, or a hook, threw, which nobody is asked about: the call has failed. */
  private abandon(controller: DispatchController, error: unknown): void {
    this.end()
    controller.abort(error)
    this.owner.fail(error)
  }

  /** Whoever does not read pauses, once what is kept for it is full. */
  private stall(isPaused: boolean): void {
    const { bodyStallMs } = this.owner
    this.unset?.()
    const isTimed = isPaused && this.state === 'passed on' && bodyStallMs !== Number.POSITIVE_INFINITY
    this.unset = isTimed ? this.owner.aside(bodyStallMs, () => this.turn.end()) : undefined
  }

  private drop(controller: DispatchController): void {
    this.state = 'dropped'
    // Whoever pauses wants to read the answer at leisure; this one is not it.
    if (controller.paused) controller.resume()
    this.unset = this.owner.aside(MOST_DROPPED_MS, () => breakOff(controller))
    this.owner.again()
  }

  private end(): void {
    this.state = 'over'
    this.leave()
  }

  private leave(): void {
    this.unset?.()
    this.turn.end()
  }
}

function breakOff(controller: DispatchController): void {
  controller.abort(new Error('not read'))
}
