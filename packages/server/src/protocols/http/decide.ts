import { rateLimitHeaders } from 'sluicegate/http'
import type { Access } from '../../access.js'
import { type Awaitable, type Decision, type Engine, type Policy, whenDone } from '../../engine/engine.js'
import { type Outcome, outcomeOf } from '../../engine/outcome.js'
import { readJsonBody } from './body.js'
import { decisionJson, priorityOf } from './decision-json.js'
import type { Route, WholeHandler, WholeResponse } from './handler.js'
import { Parameters } from './parameters.js'
import { Problem, refuseOtherSites } from './problem.js'
import { readQuery } from './query.js'
import { JSON_TYPE, reply } from './reply.js'
import { parseTakeRequest, takeRequestFrom } from './take-request.js'

/** A request whose cost can never pass must not be retried, hence not 429. */
export const STATUS: Readonly<Record<Outcome, number>> = { allowed: 200, denied: 429, impossible: 422 }

const TAKE = ['policy', 'key', 'cost', 'ttlMs', 'priority']

/** `/v1/take`: takes the tokens. 200, 429 or 422, with the decision; under concurrency also with the id of the permit. */
export function takeRoute(engine: Engine, access: Access): Route {
  return fromQueryOrJson((values, response) => {
    refuseOtherSites(response.req)
    const parameters = new Parameters(values, TAKE)
    const { served, key, cost } = takeRequestFrom(engine, parameters)
    const priority = priorityOf(response.req, access, parameters)
    if (Number.isFinite(served.permitMs)) {
      const wantedMs = parameters.milliseconds('ttlMs', 1, served.permitMs)
      return whenDone(engine.permits.take(served, key, cost, wantedMs, priority), ({ decision, id, ttlMs }) =>
        replyTaken(response, served.policyOf(key), decision, id === undefined ? undefined : { permit: id, ttlMs }),
      )
    }
    if (parameters.has('ttlMs')) throw new Problem(400, 'PARAMETER_INVALID', 'ttlMs is for policies with concurrency')
    return whenDone(served.take(key, cost, priority), (decision) => replyTaken(response, served.policyOf(key), decision))
  })
}

/** Answers with the decision of a take. */
export function replyTaken(response: WholeResponse, policy: Policy, decision: Decision, more?: object): void {
  reply(response, STATUS[outcomeOf(decision)], JSON_TYPE, decisionJson(decision, more), rateLimitHeaders(policy, decision))
}

/** `/v1/peek`: what a take would answer. Always 200, since the peek itself succeeded: `allowed` has the decision. */
export function peekRoute(engine: Engine, access: Access): Route {
  return fromQueryOrJson((values, response) => {
    const { served, key, cost, parameters } = parseTakeRequest(engine, values)
    return whenDone(served.peek(key, cost, priorityOf(response.req, access, parameters)), (decision) =>
      replyState(response, served.policyOf(key), decision),
    )
  })
}

/** Answers with the state of a key. */
export function replyState(response: WholeResponse, policy: Policy, decision: Decision): void {
  const headers = rateLimitHeaders(policy, decision).filter(([name]) => name !== 'Retry-After')
  reply(response, 200, JSON_TYPE, decisionJson(decision), headers)
}

/** A route whose parameters are those of the query string, or the members of a JSON object. */
function fromQueryOrJson(respond: (parameters: Map<string, unknown>, response: WholeResponse) => Awaitable<void>): Route {
  const whole: WholeHandler = (_, response, query) => respond(readQuery(query), response)
  return { GET: { whole }, ...fromJson(respond) }
}

/** A route whose parameters are the members of a JSON object. */
export function fromJson(
  respond: (parameters: Map<string, unknown>, response: WholeResponse) => Awaitable<void>,
  maxBytes?: number,
): Route {
  const whole: WholeHandler = (request, response, query) => {
    if (query !== '') throw new Problem(400, 'PARAMETER_INVALID', 'a POST has its parameters in the body: send no query string')
    return whenDone(readJsonBody(request, maxBytes), (members) => respond(members, response)) as Awaitable<void>
  }
  return { POST: { whole } }
}
