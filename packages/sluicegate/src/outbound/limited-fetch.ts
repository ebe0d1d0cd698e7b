import { holdsPermits } from '../empty-permit.js'
import { PolicyError } from '../errors.js'
import { fetchCall } from './fetch-request.js'
import { drop, heldResponse, type ResponseLike } from './held-response.js'
import { Lines } from './key-queues.js'
import { type Answer, OutboundCall } from './outbound-call.js'
import type { OutboundOptions } from './outbound-options.js'
import { outboundSettings } from './outbound-options.js'
import type { OutboundControls } from './outbound-stats.js'
import { controlsOf } from './outbound-stats.js'

/** Any fetch: the runtime's own, undici's, or one of your making. */
export type AnyFetch = (input: never, init: never) => Promise<ResponseLike>

/** The same fetch, whose second argument may have a `priority`, which types of Node.js do not know. */
export type LimitedFetch<Fetch extends AnyFetch> = Fetch & WithPriority<Fetch> & OutboundControls
type WithPriority<Fetch> = Fetch extends (input: infer Input, init: infer Init) => infer Answer
  ? (input: Input, init: NonNullable<Init> & { readonly priority?: 'high' | 'auto' | 'low' }) => Answer
  : unknown

/** Whether a response counts until its body is through. */
function holdsPlaces({ concurrency, policy, policyFor, limiter }: OutboundOptions): boolean {
  const own = limiter?.policy ?? policy
  return concurrency !== undefined || policyFor !== undefined || (own !== undefined && holdsPermits(own))
}

/**
 * A fetch that waits for its turn: per host, or whatever `key` says, in the order of calls. It keeps to the policy or limiter that it is given,
 * and to what the other side says (`Retry-After`, RateLimit headers of any version) and does (429, 503); it sends again what may be sent
 * again. What `fetch` answers in the end is what it answers.
 *
 * @param fetch what sends; it is called with the arguments that it is given.
 * @throws {PolicyError} on options that cannot be.
 * @example
 * const polite = limitedFetch(fetch, { policy: tokenBucket({ limit: 5, window: '1s' }), concurrency: 2 })
 * const pages = await Promise.all(urls.map((url) => polite(url)))
 */
export function limitedFetch<Fetch extends AnyFetch>(fetch: Fetch, options: OutboundOptions = {}): LimitedFetch<Fetch> {
  if (typeof fetch !== 'function') throw new PolicyError('OPTION_INVALID', 'fetch', fetch, 'must be the function that sends')
  const settings = outboundSettings(options)
  const lines = new Lines(settings)
  const send = fetch as unknown as (input: unknown, init: unknown) => Promise<ResponseLike>
  const isHeld = holdsPlaces(options)
  const after = (ms: number, fn: () => void): (() => void) => lines.aside(ms, fn)

  const limited = async (input: unknown, init?: unknown): Promise<ResponseLike> => {
    const call = fetchCall(input, init, options.priority, settings.attempts > 1)
    if (call === undefined) return send(input, init)
    try {
      const attempts = new OutboundCall(lines, settings, call.request)
      for (;;) {
        const turn = await attempts.turn()
        let response: ResponseLike
        try {
          response = await send(...call.next())
        } catch (error) {
          if (await attempts.failed(turn, error, call.followsRedirects ? undefined : false)) continue
          throw error
        }
        let isAgain = false
        try {
          isAgain = await attempts.answered(turn, answerOf(response, call.request.url))
        } catch (error) {
          // Of a hook, or of `key`: the response reaches nobody.
          drop(response)
          turn.end()
          throw error
        }
        if (!isAgain) {
          if (isHeld) return heldResponse(response, settings.bodyStallMs, after, () => turn.end())
          turn.end()
          return response
        }
        drop(response)
        turn.end()
      }
    } finally {
      call.done()
    }
  }
  return Object.assign(limited, controlsOf(lines)) as unknown as LimitedFetch<Fetch>
}

function answerOf({ status, headers = {}, redirected, url }: ResponseLike, asked: URL): Answer {
  const isRedirected = redirected === true
  return { status, headers, isRedirected, at: isRedirected && url ? urlFrom(url, asked) : undefined }
}

/** What stands in for a response need not tell all of its URL. */
function urlFrom(url: string, asked: URL): URL | undefined {
  try {
    return new URL(url, asked)
  } catch {
    return undefined
  }
}
