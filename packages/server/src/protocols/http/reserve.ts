import type { Access } from '../../access.js'
import { type Awaitable, type Decision, type Engine, MAX_RESERVATION_MS, whenDone } from '../../engine/engine.js'
import { refuseOtherSites } from './cross-site.js'
import { fromJson, replyTaken } from './decide.js'
import { decisionJson } from './decision-json.js'
import type { Route } from './handler.js'
import { Parameters } from './parameters.js'
import { refusePermits } from './permit.js'
import { priorityOf } from './priority.js'
import { Problem } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'
import { takeRequestFrom } from './take-request.js'

const DEFAULT_TTL_MS = 60_000

/** `/v1/reserve`: takes tokens whose exact number is known later. 200, 429 or 422 as a take, and the id of the reservation. */
export function reserveRoute(engine: Engine, access: Access): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    const parameters = new Parameters(values, ['policy', 'key', 'cost', 'ttlMs', 'priority'])
    const { served, key, cost } = takeRequestFrom(engine, parameters)
    refusePermits(served)
    const ttlMs = parameters.milliseconds('ttlMs', 1, MAX_RESERVATION_MS) ?? DEFAULT_TTL_MS
    return whenDone(
      engine.reservations.reserve([{ policy: served, key, cost, priority: priorityOf(response.req, access, parameters) }], ttlMs),
      ({ decisions, id }) =>
        replyTaken(response, served.policyOf(key), decisions[0] as Decision, id === undefined ? undefined : { reservation: id, ttlMs }),
    )
  })
}

/** `/v1/settle`: commits what a reservation cost. 200 with the state of the key, or 404 when it has lapsed. */
export function settleRoute(engine: Engine): Route {
  return ending(['reservation', 'cost'], (parameters) =>
    engine.reservations.settle(parameters.id('reservation'), parameters.tokens('cost', undefined)),
  )
}

/** `/v1/cancel`: gives all tokens of a reservation back. 200 with the state of the key, or 404 when it has lapsed. */
export function cancelRoute(engine: Engine): Route {
  return ending(['reservation'], (parameters) => engine.reservations.cancel(parameters.id('reservation')))
}

function ending(known: readonly string[], end: (parameters: Parameters) => Awaitable<readonly Decision[] | undefined>): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    return whenDone(end(new Parameters(values, known)), (states) => {
      const [state] = states ?? []
      if (state === undefined) throw new Problem(404, 'RESERVATION_UNKNOWN', 'there is no such reservation, or it has ended')
      reply(response, 200, JSON_TYPE, decisionJson(state))
    })
  })
}
