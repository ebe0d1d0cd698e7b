import type { Access } from '../../access.js'
import {
  type Awaitable,
  answersOf,
  type Decision,
  type Engine,
  type Key,
  MAX_RESERVATION_MS,
  type ServedPolicy,
  type TakePart,
  whenDone,
} from '../../engine/engine.js'
import { outcomeOf } from '../../engine/outcome.js'
import { limitRequestOf, limitResponseJson } from '../../envoy/limit-json.js'
import { LimitRequestError } from '../../envoy/limit-request.js'
import type { RateLimits } from '../../envoy/rate-limits.js'
import { authRoute } from './auth.js'
import { readJsonBody } from './body.js'
import { blockRoute, penalizeRoute, refundRoute, resetRoute } from './change.js'
import { fromJson, peekRoute, replyTaken, STATUS, takeRoute } from './decide.js'
import { decisionJson, decisionObject, priorityOf } from './decision-json.js'
import type { RequestHead, Route, WholeHandler } from './handler.js'
import { addRoute, closeRoute, openRoute } from './hold.js'
import { openapiRoute } from './openapi.js'
import { Parameters } from './parameters.js'
import { heartbeatRoute, refusePermits, releaseRoute } from './permit.js'
import { Problem, refuseOtherSites } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'
import { takeRequestFrom } from './take-request.js'

/** Holds the most descriptors that a request may have, with some entries each. */
const MAX_REQUEST_BYTES = 262_144

/**
 * `/json`: a request to Envoy's rate limit service as JSON, for clients without gRPC. 200 with `OK`, 429 with `OVER_LIMIT`, 400 for a request
 * that makes no sense. The content type does not matter, as in Envoy's ratelimit service, whose clients send that of curl.
 */
function jsonRoute(limits: RateLimits, access: Access): Route {
  const whole: WholeHandler = async (request, response) => {
    const members = await readJsonBody(request, MAX_REQUEST_BYTES, 'any')
    refuseOtherSites(request)
    try {
      await whenDone(limits.decide(limitRequestOf(members), priorityOf(request, access)), (answer) =>
        reply(response, answer.over ? 429 : 200, JSON_TYPE, limitResponseJson(answer)),
      )
    } catch (error) {
      if (error instanceof LimitRequestError) throw new Problem(400, 'REQUEST_INVALID', error.message)
      throw error
    }
  }
  return { POST: { whole } }
}

/** Paths for callers that are limited, or decide for those that are. */
export function decisionRoutes(engine: Engine, limits: RateLimits, access: Access): [path: string, route: Route][] {
  return [
    ['/v1/take', takeRoute(engine, access)],
    ['/v1/peek', peekRoute(engine, access)],
    ['/v1/auth', authRoute(engine, access)],
    ['/v1/batch', batchRoute(engine, access)],
    ['/v1/reserve', reserveRoute(engine, access)],
    ['/v1/settle', settleRoute(engine)],
    ['/v1/cancel', cancelRoute(engine)],
    ['/v1/open', openRoute(engine, access)],
    ['/v1/add', addRoute(engine)],
    ['/v1/close', closeRoute(engine)],
    ['/v1/release', releaseRoute(engine)],
    ['/v1/heartbeat', heartbeatRoute(engine)],
    ['/json', jsonRoute(limits, access)],
    ['/openapi.json', openapiRoute()],
  ]
}

/** Paths that change the keys of others. */
export function changeRoutes(engine: Engine): [path: string, route: Route][] {
  return [
    ['/v1/refund', refundRoute(engine)],
    ['/v1/penalize', penalizeRoute(engine)],
    ['/v1/block', blockRoute(engine)],
    ['/v1/reset', resetRoute(engine)],
  ]
}

const DEFAULT_TTL_MS = 60_000

/** `/v1/reserve`: takes tokens whose exact number is known later. 200, 429 or 422 as a take, and the id of the reservation. */
function reserveRoute(engine: Engine, access: Access): Route {
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
function settleRoute(engine: Engine): Route {
  return ending(['reservation', 'cost'], (parameters) =>
    engine.reservations.settle(parameters.id('reservation'), engine.costOf(parameters.cost('cost', undefined))),
  )
}

/** `/v1/cancel`: gives all tokens of a reservation back. 200 with the state of the key, or 404 when it has lapsed. */
function cancelRoute(engine: Engine): Route {
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

const MAX_TAKES = 100
const MAX_KEY_LENGTH = 1_024
/** Holds that number of the longest keys in UTF-8. */
const MAX_BATCH_BYTES = 524_288

/**
 * `/v1/batch`: several takes in one request. With `all` they pass together or not at all, and the status is that of the whole as of one take. Otherwise
 * each is decided by itself, in order, and the status is 200.
 */
function batchRoute(engine: Engine, access: Access): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    const parameters = new Parameters(values, ['takes', 'all'])
    const isAll = parameters.boolean('all')
    // All of them are read before the first is taken.
    const parts = parameters.objects('takes', MAX_TAKES).map((take) => readPart(engine, access, response.req, take))
    return whenDone(isAll ? engine.takeAll(parts) : each(parts), (decisions) => {
      const body = { allowed: decisions.every(({ allowed }) => allowed), decisions: decisions.map(decisionObject) }
      reply(response, isAll ? statusOf(decisions) : 200, JSON_TYPE, JSON.stringify(body))
    })
  }, MAX_BATCH_BYTES)
}

function readPart(engine: Engine, access: Access, request: RequestHead, take: ReadonlyMap<string, unknown>): TakePart {
  const parameters = new Parameters(take, ['policy', 'key', 'cost', 'peek', 'priority'])
  const { served, key, cost } = takeRequestFrom(engine, parameters)
  refusePermits(served)
  checkTake(served, key, cost)
  return { policy: served, key, cost, peekOnly: parameters.boolean('peek'), priority: priorityOf(request, access, parameters) }
}

/** What the engine would refuse, found before the takes in front of it are charged. */
function checkTake({ policy: { policies = [] } }: ServedPolicy, key: Key, cost: number): void {
  const keys = typeof key === 'string' ? [key] : key
  if (typeof key !== 'string' && keys.length !== policies.length)
    throw new Problem(400, 'KEY_INVALID', 'a list of keys is for an all-of, with a key for each of its policies')
  if (keys.some(({ length }) => length > MAX_KEY_LENGTH)) throw new Problem(400, 'KEY_INVALID', 'key must have at most 1024 characters')
  if (!Number.isInteger(cost) || cost < 1) throw new Problem(400, 'COST_INVALID', 'cost must be an integer of at least 1')
}

function each(parts: readonly TakePart[]): Awaitable<Decision[]> {
  return answersOf(parts, ({ policy, key, cost, peekOnly, priority }) =>
    peekOnly ? policy.peek(key, cost, priority) : policy.take(key, cost, priority),
  )
}

/** Impossible if one of them is: the same request can never pass. */
function statusOf(decisions: readonly Decision[]): number {
  const outcomes = decisions.map(outcomeOf)
  return STATUS[outcomes.find((outcome) => outcome === 'impossible') ?? outcomes.find((outcome) => outcome === 'denied') ?? 'allowed']
}
