import { type Awaitable, isPromise } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import type { After } from '../time/clock.js'
import { warnProcess } from '../warn-once.js'
import type { LimitResult } from './limit-result.js'
import type { Counts } from './middleware-options.js'

/** Called by an adapter after the response: releases permits, closes holds, and refunds what does not count. */
export interface Settle {
  /**
   * With the status, or undefined if the client had gone before the response ended. It throws or rejects with what `counts` does. Further
   * calls change nothing.
   */
  (status: number | undefined): Awaitable<void>
  /**
   * Present where permits or holds are held: renews them until then, or until the returned function is called. For callers that are certain to notice the end
   * of the response.
   */
  readonly keep?: () => () => void
}

/**
 * The settling of one request. A response that never ended has no status: its request counts, or a client could avoid being counted by
 * disconnecting. A request also counts if `counts` fails.
 */
export function settleOf(results: readonly LimitResult[], counts: (status: number) => Awaitable<boolean>, after: After): Settle {
  let isSettled = false
  const settle = (status: number | undefined): Awaitable<void> => {
    if (isSettled) return undefined
    isSettled = true
    // What is held is released at once, whatever `counts` will return.
    for (const result of results) if (result.isHeld) result.settle(true)
    if (status === undefined) return settleAll(results, true)
    let found: Awaitable<boolean>
    try {
      found = counts(status)
    } catch (error) {
      return settleFailed(results, error)
    }
    if (!isPromise(found)) return settleAll(results, found)
    return found.then(
      (isCounted) => settleAll(results, isCounted),
      (error) => settleFailed(results, error),
    )
  }
  if (!results.some(({ isHeld }) => isHeld)) return settle
  return Object.assign(settle, {
    keep: () => {
      for (const result of results) result.renew(after)
      return () => {
        for (const result of results) result.stopRenewing()
      }
    },
  })
}

/** Settles where no caller is left to handle an error: what `counts` throws becomes a warning of the process. */
export function settleQuietly(settle: Settle, status: number | undefined): void {
  try {
    const settled = settle(status)
    if (isPromise(settled)) settled.then(undefined, warnOf)
  } catch (error) {
    warnOf(error)
  }
}

/** Whether a request counts, by the option `counts`. @throws {PolicyError} `OPTION_INVALID` */
export function countsOf<Request>(counts: Counts<Request> = 'all'): (status: number, request: Request) => Awaitable<boolean> {
  if (typeof counts === 'function') return counts
  switch (counts) {
    case 'all':
      return () => true
    case 'failures':
      return (status) => status >= 400
    case 'successes':
      return (status) => status < 400
  }
  throw new PolicyError(
    'OPTION_INVALID',
    'counts',
    counts,
    "must be 'all', 'failures', 'successes' or a function of the status and the request",
  )
}

function settleAll(results: readonly LimitResult[], counts: boolean): void {
  for (const result of results) result.settle(counts)
}

function settleFailed(results: readonly LimitResult[], error: unknown): never {
  settleAll(results, true)
  throw error
}

function warnOf(error: unknown): void {
  if (error instanceof Error) warnProcess(error)
  else console.warn(error)
}
