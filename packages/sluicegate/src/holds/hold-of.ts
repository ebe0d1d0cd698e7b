import type { AnyHold } from '../holds/metered.js'
import { onceInProcess } from '../once-in-process.js'
import type { LimitResult } from './limit-result.js'

/** The holds of requests under way, by the name of the policy; the last one is that of the nearest limit. */
const holds = /* @__PURE__ */ onceInProcess('holds of requests', () => new WeakMap<object, Map<string, AnyHold>>())

/**
 * The hold of a request under `cost: 'metered'`, for its handler to {@link Hold.add} to. It closes by itself at the end of the response; close it
 * earlier, with the true cost, where that is known. Undefined for a request that no metered limit counts.
 *
 * @param request what the functions among the options get: the request of Express, Fastify, Nest or Fetch, the context of Hono or Koa.
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

/** Gives the handler of a request the holds of its limits. */
export function giveHolds(request: unknown, results: readonly LimitResult[]): void {
  for (const { hold, limit } of results) {
    if (hold === undefined) continue
    const own = holds.get(request as object) ?? new Map<string, AnyHold>()
    own.delete(limit.limiter.policy.name)
    own.set(limit.limiter.policy.name, hold)
    holds.set(request as object, own)
  }
}
