import type { Awaitable } from '../../engine/engine.js'
import type { Call } from './method.js'
import { GrpcError, STATUS } from './status.js'

/** Of the time that a client waits this part is ours: of the 20 ms that Envoy waits by default, 15. The rest is for the way back. */
const OWN_SHARE = 0.75

/** `value`, or DEADLINE_EXCEEDED when it is not there while the client still waits. Decisions in memory are there; those of a store may not be. */
export function inTime<Value>(value: Awaitable<Value>, { timeoutMs }: Call): Awaitable<Value> {
  if (!(value instanceof Promise) || timeoutMs === undefined) return value
  const waitMs = Math.max(1, OWN_SHARE * timeoutMs)
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new GrpcError(STATUS.deadlineExceeded, `there is no decision after ${Math.round(waitMs)} ms`)),
      waitMs,
    )
    value.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
