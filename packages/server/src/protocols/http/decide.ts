import type { ServerResponse } from 'node:http'
import { rateLimitHeaders } from 'sluicegate/http'
import { type Awaitable, type Engine, whenDone } from '../../engine/engine.js'
import { type Outcome, outcomeOf } from '../../engine/outcome.js'
import { type Ask, readAsk } from './ask.js'
import { readJsonBody } from './body.js'
import { refuseOtherSites } from './cross-site.js'
import { decisionJson } from './decision-json.js'
import type { Route } from './handler.js'
import { Problem } from './problem.js'
import { readQuery } from './query.js'
import { JSON_TYPE, reply } from './reply.js'

/** A request whose cost can never pass must not be retried, hence not 429. */
const STATUS: Readonly<Record<Outcome, number>> = { allowed: 200, denied: 429, impossible: 422 }

/** `/v1/take`: takes the tokens. 200, 429 or 422, with the decision. */
export function takeRoute(engine: Engine): Route {
  return asking(engine, ({ served, key, cost }, response) => {
    refuseOtherSites(response.req)
    return whenDone(served.take(key, cost), (decision) =>
      reply(response, STATUS[outcomeOf(decision)], JSON_TYPE, decisionJson(decision), rateLimitHeaders(served.policy, decision)),
    )
  })
}

/** `/v1/peek`: what a take would answer. Always 200, since the peek itself succeeded: `allowed` has the decision. */
export function peekRoute(engine: Engine): Route {
  return asking(engine, ({ served, key, cost }, response) => {
    return whenDone(served.peek(key, cost), (decision) => {
      const headers = rateLimitHeaders(served.policy, decision).filter(([name]) => name !== 'Retry-After')
      reply(response, 200, JSON_TYPE, decisionJson(decision), headers)
    })
  })
}

function asking(engine: Engine, answer: (ask: Ask, response: ServerResponse) => Awaitable<void>): Route {
  return {
    GET: (_, response, query) => answer(readAsk(engine, readQuery(query)), response),
    async POST(request, response, query) {
      if (query !== '') throw new Problem(400, 'PARAMETER_INVALID', 'a POST has its parameters in the body: send no query string')
      await answer(readAsk(engine, await readJsonBody(request)), response)
    },
  }
}
