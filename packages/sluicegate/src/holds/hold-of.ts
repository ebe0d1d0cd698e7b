import { onceInProcess } from '../once-in-process.js'
import type { AnyHold } from './metered.js'

/** The holds of requests under way, and of responses to our own, by the name of the policy; the last one is that of the nearest limit. */
const holds = /* @__PURE__ */ onceInProcess('holds of requests', () => new WeakMap<object, Map<string, AnyHold>>())

/**
 * The hold of a request under `cost: 'metered'`, for its handler to {@link Hold.add} to. It closes by itself at the end of the response; close it
 * earlier, with the true cost, where that is known. Undefined for a request that no metered limit counts.
 *
 * @param request what the functions among the options get: the request of Express, Fastify, Nest or Fetch, the context of Hono or Koa. The response of
 * a `limitedFetch`, for the hold of the request that it answers.
 * @param policy the name of the policy, where several metered limits apply; without it the nearest limit's.
 * @example
 * app.get('/answer', rateLimit({ policy, cost: 'metered' }), async (request, response) => {
 *   for await (const piece of answer()) if ((await holdOf(request)?.add(piece.tokens)) !== false) response.write(piece.text)
 *   response.end()
 * })
 */
export function holdOf(request: object, policy?: string): AnyHold | undefined {
  const own = holds.get(request)
  if (own === undefined) return undefined
  return policy === undefined ? [...own.values()].at(-1) : own.get(policy)
}

/** Gives a request, or a response, a hold, which then is that of its nearest limit. */
export function giveHold(to: object, policy: string, hold: AnyHold): void {
  const own = holds.get(to) ?? new Map<string, AnyHold>()
  own.delete(policy)
  own.set(policy, hold)
  holds.set(to, own)
}
