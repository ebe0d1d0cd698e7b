import { type Awaitable, isPromise } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import type { After } from '../kept-permit.js'
import { warnProcess } from '../process-warning.js'
import type { Asked } from './limit-result.js'
import type { Counts } from './middleware-options.js'

/** What an outcome has to be told when the response has ended. */
export interface Settle {
  /** With the status, or undefined when the client had gone before. It throws or rejects with what `counts` does. Further calls change nothing. */
  (status: number | undefined): Awaitable<void>
  /** Where places are held: keeps them from running out until then, for who is sure to hear of the end. */
  readonly keep?: () => void
}

/**
 * Settles what is open of one request. How a response would have ended that did not is not known: it counts, or breaking off would be free. So
 * does one of which `counts` fails to say it.
 */
export function settleOf(open: readonly Asked[], counts: (status: number) => Awaitable<boolean>, after: After): Settle {
  let isSettled = false
  const settle = (status: number | undefined): Awaitable<void> => {
    if (isSettled) return undefined
    isSettled = true
    // Places wait for no answer of `counts`.
    for (const each of open) if (each.holdsPlace) each.settle(true)
    if (status === undefined) return settleEach(open, true)
    let found: Awaitable<boolean>
    try {
      found = counts(status)
    } catch (error) {
      return settleFailed(open, error)
    }
    if (!isPromise(found)) return settleEach(open, found)
    return found.then(
      (counted) => settleEach(open, counted),
      (error) => settleFailed(open, error),
    )
  }
  return open.some(({ holdsPlace }) => holdsPlace) ? Object.assign(settle, { keep: () => keepEach(open, after) }) : settle
}

/** Tells it where no caller is left to hear of a fault: what `counts` throws is a warning, and not the end of the process. */
export function settleQuietly(settle: Settle, status: number | undefined): void {
  try {
    const settled = settle(status)
    if (isPromise(settled)) settled.then(undefined, warnOf)
  } catch (error) {
    warnOf(error)
  }
}

function settleEach(open: readonly Asked[], counts: boolean): void {
  for (const each of open) each.settle(counts)
}

function settleFailed(open: readonly Asked[], error: unknown): never {
  settleEach(open, true)
  throw error
}

function keepEach(open: readonly Asked[], after: After): void {
  for (const each of open) each.keep(after)
}

function warnOf(error: unknown): void {
  if (error instanceof Error) warnProcess(error)
  else console.warn(error)
}

/** Whether a request counts. @throws {PolicyError} `OPTION_INVALID` */
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
