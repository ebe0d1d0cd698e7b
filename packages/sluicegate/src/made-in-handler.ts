import { onceInProcess } from './once-in-process.js'
import type { Policy } from './policy/policy.js'
import { warnOnce } from './warn-once.js'

/** What of Node.js calls a handler of HTTP/1 and of HTTP/2. */
const HANDLING = /\bparserOnIncoming\b|\bonServerStream\b/
const MOST_FRAMES = 100
const MOST_PLACES = 100
/** After so many limiters that were made elsewhere, some are looked at: to look costs as much as to make one. */
const LOOKED_AT = 100
const EACH = 16

const warn = /* @__PURE__ */ warnOnce()
/** By place and policy: how many limiters were made. */
const made = /* @__PURE__ */ onceInProcess('limiters made in handlers', () => new Map<string, number>())

let elsewhere = 0

/**
 * Warns of the second limiter of a policy that was made at one place while requests were handled: it does not see what the first one counted.
 * Of a handler that has awaited something before, nothing is known.
 *
 * @param maker the function that the user called.
 */
export function noteMade(policy: Policy, maker: (...given: never[]) => unknown): void {
  if (elsewhere > LOOKED_AT && ++elsewhere % EACH !== 0) return
  const place = placeInHandler(maker)
  if (place === undefined) {
    elsewhere++
    return
  }
  const { name, limit, windowMs } = policy
  const kind = `${name} ${limit} ${windowMs} ${place}`
  const count = (made.get(kind) ?? 0) + 1
  if (count > 1) {
    const message = `${count} limiters of the policy '${name}' were made while requests were handled, ${place}: make one, outside the handler`
    warn('SLUICEGATE_LIMITER_PER_REQUEST', `${message}, and give each tenant a key of it, or each starts afresh`, kind)
  }
  if (made.size < MOST_PLACES || made.has(kind)) made.set(kind, count)
}

/** Where the maker was called, if a handler of a server of Node.js did; undefined elsewhere. */
function placeInHandler(maker: (...given: never[]) => unknown): string | undefined {
  if (typeof Error.captureStackTrace !== 'function') return undefined
  const { stackTraceLimit } = Error
  const holder: { stack?: unknown } = {}
  try {
    Error.stackTraceLimit = MOST_FRAMES
    Error.captureStackTrace(holder, maker)
    Error.stackTraceLimit = stackTraceLimit
  } catch {
    // Frozen intrinsics.
    return undefined
  }
  const { stack } = holder
  if (typeof stack !== 'string' || !HANDLING.test(stack)) return undefined
  return stack.split('\n')[1]?.trim()
}
