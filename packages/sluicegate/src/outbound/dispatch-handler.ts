import type { HeaderSource } from '../headers/header-source.js'

/** The part of undici's controller of a request that is used here. */
export interface DispatchController {
  readonly paused: boolean
  readonly aborted: boolean
  readonly reason: unknown
  rawHeaders?: unknown
  rawTrailers?: unknown
  pause(): void
  resume(): void
  abort(reason: unknown): void
}

/** What undici calls while a request is under way (7 and later). */
export interface DispatchHandler {
  onRequestStart?(controller: DispatchController, context: unknown): void
  onRequestUpgrade?(controller: DispatchController, status: number, headers: HeaderSource, socket: unknown): void
  onResponseStart?(controller: DispatchController, status: number, headers: HeaderSource, text?: string): void
  onResponseData?(controller: DispatchController, chunk: { readonly length: number }): void
  onResponseEnd?(controller: DispatchController, trailers: unknown): void
  onResponseError?(controller: DispatchController, error: unknown): void
}

/** What a request is asked to be dispatched with; only what is looked at. */
export interface DispatchOptions {
  readonly origin?: string | URL
  readonly path: string
  readonly method: string
  readonly body?: unknown
  readonly headers?: unknown
}

export type Dispatch = (options: DispatchOptions, handler: DispatchHandler) => boolean

/**
 * One controller for the caller, from before the first attempt to after the last: aborted while nothing is under way it ends the waiting, else
 * what is under way.
 */
export class LastingController implements DispatchController {
  /** By the caller. */
  isPaused = false
  /** Told when the caller pauses, and when it goes on. */
  onPause: ((isPaused: boolean) => void) | undefined
  private own: AbortController
  private current: DispatchController | undefined

  constructor(own: AbortController) {
    this.own = own
  }

  get target(): DispatchController | undefined {
    return this.current
  }

  /** What is under way from now on. */
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
