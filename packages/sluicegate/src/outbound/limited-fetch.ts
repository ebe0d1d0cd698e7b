import { holdsPermits } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import { fetchCall } from './fetch-request.js'
import { drop, heldResponse, type ResponseLike } from './held-response.js'
import { KeyQueues } from './key-queues.js'
import { type Answer, OutboundCall } from './outbound-call.js'
import { type OutboundOptions, outboundSettings } from './outbound-options.js'
import { controlsOf, type OutboundControls } from './outbound-stats.js'

/** Any fetch: the runtime's own, undici's, or one of your own. */
export type AnyFetch = (input: never, init: never) => Promise<ResponseLike>

/** The same fetch, whose second argument may have a `priority`, which the types of Node.js lack. */
export type LimitedFetch<Fetch extends AnyFetch> = Fetch & WithPriority<Fetch> & OutboundControls
type WithPriority<Fetch> = Fetch extends (input: infer Input, init: infer Init) => infer Answer
  ? (input: Input, init: NonNullable<Init> & { readonly priority?: 'high' | 'auto' | 'low' }) => Answer
  : unknown

/** Whether a response counts for `concurrency`, or holds a permit, until its body has ended. */
function holdsPlaces({ concurrency, policy, policyFor, limiter }: OutboundOptions): boolean {
  const own = limiter?.policy ?? policy
  return concurrency !== undefined || policyFor !== undefined || (own !== undefined && holdsPermits(own))
}

/**
 * A fetch whose requests wait for their turn, per host or per `key`, in the order of calls. It obeys the policy or limiter it is given,
 * what the server announces (`Retry-After`, RateLimit headers of any version) and how it responds (429, 503), and retries requests that are
 * safe to retry. It resolves or rejects with what `fetch` does in the last attempt.
 *
 * @param fetch sends the requests; it is called with the arguments of the call.
 * @throws {PolicyError} on options that are unknown or wrong.
 * @example
 * const polite = limitedFetch(fetch, { policy: tokenBucket({ limit: 5, window: '1s' }), concurrency: 2 })
 * const pages = await Promise.all(urls.map((url) => polite(url)))
 */
export function limitedFetch<Fetch extends AnyFetch>(fetch: Fetch, options: OutboundOptions = {}): LimitedFetch<Fetch> {
  if (typeof fetch !== 'function') throw new PolicyError('OPTION_INVALID', 'fetch', fetch, 'must be the function that sends')
  const settings = outboundSettings(options)
  const queues = new KeyQueues(settings)
  const send = fetch as unknown as (input: unknown, init: unknown) => Promise<ResponseLike>
  const isHeld = holdsPlaces(options)
  const after = (ms: number, fn: () => void): (() => void) => queues.background(ms, fn)

  const limited = async (input: unknown, init?: unknown): Promise<ResponseLike> => {
    const call = fetchCall(input, init, options.priority, settings.attempts > 1)
    if (call === undefined) return send(input, init)
    try {
      const attempts = new OutboundCall(queues, settings, call.request)
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
          // A hook or `key` failed: the response is not returned.
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
  return Object.assign(limited, controlsOf(queues)) as unknown as LimitedFetch<Fetch>
}

function answerOf({ status, headers = {}, redirected, url }: ResponseLike, asked: URL): Answer {
  const isRedirected = redirected === true
  return { status, headers, isRedirected, at: isRedirected && url ? urlFrom(url, asked) : undefined }
}

/** A stand-in for a response may have only a part of its URL. */
function urlFrom(url: string, asked: URL): URL | undefined {
  try {
    return new URL(url, asked)
  } catch {
    return undefined
  }
}
