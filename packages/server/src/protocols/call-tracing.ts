import type { IncomingHttpHeaders } from 'node:http'
import type { Awaitable } from '../engine/awaitable.js'

/** A call of a client that asks for decisions. */
export interface TracedCall {
  /** Of a bounded set, for example `POST /v1/take`. */
  readonly name: string
  /** Where the trace context of the caller is; undefined where the protocol has no place for it. */
  readonly headers: IncomingHttpHeaders | undefined
  readonly attributes: Readonly<Record<string, string>>
  /** Read when the call has been answered. */
  readonly endAttributes?: () => Readonly<Record<string, string | number>>
}

/** Follows calls for decisions. */
export interface CallTracing {
  /** Runs `act` as part of a trace; results and errors of it pass through. */
  run<Result>(call: TracedCall, act: () => Awaitable<Result>): Awaitable<Result>
}
