import type { Awaitable } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import type { Counts } from './gatekeeper-options.js'

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
