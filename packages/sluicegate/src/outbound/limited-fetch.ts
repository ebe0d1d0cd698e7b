import { holdsPermits } from '../empty-permit.js'
import type { HeaderSource } from '../headers/header-source.js'
import { fetchCall } from './fetch-request.js'
import { dropped, heldResponse, type ResponseLike } from './held-response.js'
import { Lines } from './lines.js'
import { OutboundCall } from './outbound-call.js'
import type { OutboundOptions } from './outbound-options.js'
import { outboundSettings } from './outbound-settings.js'
import type { OutboundControls } from './outbound-stats.js'

/** Any fetch: the runtime's own, undici's, or one of your making. */
export type AnyFetch = (input: never, init?: never) => Promise<ResponseLike>

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
export function limitedFetch<Fetch extends AnyFetch>(fetch: Fetch, options: OutboundOptions = {}): Fetch & OutboundControls {
  const settings = outboundSettings(options)
  const lines = new Lines(settings)
  const send = fetch as unknown as (input: unknown, init: unknown) => Promise<ResponseLike>
  const isHeld = holdsPlaces(options)
  const after = (ms: number, fn: () => void): (() => void) => lines.after(ms, fn)
  let retried = 0
  const onRetried = (): void => void retried++

  const limited = async (input: unknown, init?: unknown): Promise<ResponseLike> => {
    const call = fetchCall(input, init, options.priority, settings.attempts > 1)
    if (call === undefined) return send(input, init)
    try {
      const attempts = new OutboundCall(lines, settings, call.request, onRetried)
      for (;;) {
        const turn = await attempts.turn()
        let response: ResponseLike
        try {
          response = await send(...call.next())
        } catch (error) {
          if (attempts.failed(turn, error)) continue
          throw error
        }
        let isAgain = false
        try {
          isAgain = attempts.answered(turn, response.status, response.headers as HeaderSource, finalUrl(response))
        } catch (error) {
          // A hook's: the response reaches nobody.
          void dropped(response)
          turn.end()
          throw error
        }
        if (!isAgain) {
          if (isHeld) return heldResponse(response, settings.bodyStallMs, after, () => turn.end())
          turn.end()
          return response
        }
        void dropped(response)
        turn.end()
      }
    } finally {
      call.done()
    }
  }
  const controls: OutboundControls = {
    stats: () => ({ ...lines.stats(), retried }),
    statsOf: (key) => lines.statsOf(key),
    close: () => lines.close(),
  }
  return Object.assign(limited, controls) as unknown as Fetch & OutboundControls
}

/** Where a response came from, when it was not who was asked. */
function finalUrl({ url, redirected }: ResponseLike): URL | undefined {
  return redirected === true && url ? new URL(url) : undefined
}
