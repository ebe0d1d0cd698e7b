import type { HeaderSource } from '../headers/header-source.js'

/** The part of undici's request controller that is used here. */
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
