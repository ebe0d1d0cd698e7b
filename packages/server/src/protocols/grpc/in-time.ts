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

const MS_BY_UNIT: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 }

/** Milliseconds of a header `grpc-timeout`: at most 8 digits and a unit, for example `20m`. Undefined for anything else. */
export function grpcTimeoutMs(header: unknown): number | undefined {
  if (typeof header !== 'string') return undefined
  const [, digits, unit] = /^(\d{1,8})([HMSmun])$/.exec(header) ?? []
  return digits === undefined || unit === undefined ? undefined : Number(digits) * (MS_BY_UNIT[unit] as number)
}
