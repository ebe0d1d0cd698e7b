import { type Awaitable, isPromise } from '../awaitable.js'
import type { HeaderSource } from '../headers/header.js'
import type { OutboundCall } from './outbound-call.js'
import type { Turn } from './waiting-list.js'

/** How much of a response that is not passed on is read, and for how long, to keep its connection; a longer one is aborted. */
const MAX_DROPPED_BYTES = 65_536
const MAX_DROPPED_MS = 1_000

/** The request that an attempt belongs to. */
export interface AttemptOwner {
  readonly call: OutboundCall
  /** The caller's handler. */
  readonly handler: DispatchHandler
  readonly controller: LastingController
  /** The context passed to `onRequestStart`, which the caller may have kept. */
  readonly context: object
  /** A body that is not read for this time stops counting for `concurrency`. */
  readonly bodyTimeoutMs: number
  /** Starts another attempt. */
  again(): void
  fail(error: unknown): void
  background(ms: number, fn: () => void): () => void
}

/**
 * One attempt at a request of undici. Its response is passed to the caller, or is discarded while the next attempt waits for its turn. It
 * counts for `concurrency` until it has ended.
 */
export class DispatchAttempt implements DispatchHandler {
  private readonly turn: Turn
  private readonly owner: AttemptOwner
  private state: 'sent' | 'undecided' | 'passed on' | 'dropped' | 'over' = 'sent'
  /** Events that arrived before it was decided whether to pass them on. */
  private readonly unread: (() => void)[] = []
  private droppedBytes = 0
  private unset: (() => void) | undefined
  /** The URLs of redirects that an inner interceptor followed, including the last once it has answered. */
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
      // A hook threw: the connection is closed.
      ;(socket as { destroy?(): void }).destroy?.()
      this.owner.fail(error)
      return
    }
    handler.onRequestUpgrade?.(controller, status, headers, socket)
  }

  onResponseStart(controller: DispatchController, status: number, headers: HeaderSource, text?: string): void {
    const { owner } = this
    const pass = (): void => owner.handler.onResponseStart?.(owner.controller, status, headers, text)
    // Informational responses precede the final one.
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
    if (this.droppedBytes > MAX_DROPPED_BYTES) breakOff(controller)
  }

  onResponseEnd(controller: DispatchController, trailers: unknown): void {
    if (this.state === 'undecided') {
      this.unread.push(() => this.onResponseEnd(controller, trailers))
      return
    }
    this.leave()
    // If it throws, undici reports an error, which is passed to the caller as well.
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
      // Aborted in the meantime.
      if (this.state === 'over') return
      this.decide(controller, isSo, pass)
      for (const each of this.unread.splice(0)) each()
      if (!this.owner.controller.isPaused) controller.resume()
    }
    isAgain.then(decide).catch((error) => this.abandon(controller, error))
  }

  private decide(controller: DispatchController, isAgain: boolean, pass: () => void): void {
    // The caller may abort within a hook.
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

  /** The caller's handler or a hook threw: the call has failed, without a retry. */
  private abandon(controller: DispatchController, error: unknown): void {
    this.end()
    controller.abort(error)
    this.owner.fail(error)
  }

  /** A caller that does not read pauses once its buffer is full. */
  private stall(isPaused: boolean): void {
    const { bodyTimeoutMs } = this.owner
    this.unset?.()
    const isTimed = isPaused && this.state === 'passed on' && bodyTimeoutMs !== Number.POSITIVE_INFINITY
    this.unset = isTimed ? this.owner.background(bodyTimeoutMs, () => this.turn.end()) : undefined
  }

  private drop(controller: DispatchController): void {
    this.state = 'dropped'
    // The caller paused an earlier response; this one is discarded and has to flow.
    if (controller.paused) controller.resume()
    this.unset = this.owner.background(MAX_DROPPED_MS, () => breakOff(controller))
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

/** The part of undici's request controller that is used here. */
interface DispatchController {
  readonly paused: boolean
  readonly aborted: boolean
  readonly reason: unknown
  rawHeaders?: unknown
  rawTrailers?: unknown
  pause(): void
  resume(): void
  abort(reason: unknown): void
}

/** The methods that undici calls during a request (7 and later). */
export interface DispatchHandler {
  onRequestStart?(controller: DispatchController, context: unknown): void
  onRequestUpgrade?(controller: DispatchController, status: number, headers: HeaderSource, socket: unknown): void
  onResponseStart?(controller: DispatchController, status: number, headers: HeaderSource, text?: string): void
  onResponseData?(controller: DispatchController, chunk: { readonly length: number }): void
  onResponseEnd?(controller: DispatchController, trailers: unknown): void
  onResponseError?(controller: DispatchController, error: unknown): void
}

/** The part of undici's request options that is read here. */
export interface DispatchOptions {
  readonly origin?: string | URL
  readonly path: string
  readonly method: string
  readonly body?: unknown
  readonly headers?: unknown
}

export type Dispatch = (options: DispatchOptions, handler: DispatchHandler) => boolean

/** One controller for the caller across all attempts. Abort ends the attempt under way, or the wait between attempts. */
export class LastingController implements DispatchController {
  /** Whether the caller paused it. */
  isPaused = false
  /** Called when the caller pauses and resumes. */
  onPause: ((isPaused: boolean) => void) | undefined
  private own: AbortController
  private current: DispatchController | undefined

  constructor(own: AbortController) {
    this.own = own
  }

  get target(): DispatchController | undefined {
    return this.current
  }

  /** The controller of the attempt under way. */
  set target(target: DispatchController | undefined) {
    this.current = target
    if (target === undefined) return
    if (this.isPaused) target.pause()
    if (this.own.signal.aborted) target.abort(this.own.signal.reason)
  }

  get paused(): boolean {
    return this.isPaused || (this.current?.paused ?? false)
  }

  get aborted(): boolean {
    return this.own.signal.aborted || (this.current?.aborted ?? false)
  }

  get reason(): unknown {
    return this.own.signal.aborted ? this.own.signal.reason : (this.current?.reason ?? null)
  }

  get rawHeaders(): unknown {
    return this.current?.rawHeaders ?? null
  }

  get rawTrailers(): unknown {
    return this.current?.rawTrailers ?? null
  }

  pause(): void {
    this.isPaused = true
    this.current?.pause()
    this.onPause?.(true)
  }

  resume(): void {
    this.isPaused = false
    this.onPause?.(false)
    this.current?.resume()
  }

  abort(reason: unknown): void {
    this.own.abort(reason)
    this.current?.abort(reason)
  }
}
