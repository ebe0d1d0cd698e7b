import type { HeaderPair } from 'sluicegate/http'
import type { Access } from '../../access.js'
import {
  type Added,
  DEFAULT_HOLD_MS,
  type Engine,
  type HoldFault,
  MAX_HOLD_MS,
  MAX_HOLD_WAIT_MS,
  type Usage,
  type WorkAsked,
  whenDone,
} from '../../engine/engine.js'
import { fromJson, replyTaken, STATUS } from './decide.js'
import { decisionJson, priorityOf } from './decision-json.js'
import type { Route, WholeResponse } from './handler.js'
import { Parameters } from './parameters.js'
import { refusePermits } from './permit.js'
import { Problem, type ProblemCode, refuseOtherSites } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'

/** The shortest time of the library. */
const LEAST_HOLD_MS = 10

/** `/v1/open`: begins work whose cost is known only afterwards. 200, 429 or 422 as a take, and the id of the hold. */
export function openRoute(engine: Engine, access: Access): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    const parameters = new Parameters(values, ['policy', 'key', 'expect', 'most', 'ttlMs', 'over', 'id', 'priority'])
    const served = parameters.policy(engine)
    refusePermits(served)
    const key = parameters.key(served)
    const floor = served.floorOf(key, priorityOf(response.req, access, parameters))
    const asked = askedOf(engine, parameters)
    return whenDone(engine.holds.open(served, key, asked, floor), (answer) => {
      const { decision, id, used: _, ttlMs = asked.ttlMs, ...state } = answered(answer)
      const output = affordableOutput(engine, parameters, state.affordable)
      const more = { hold: id, ...state, ...(Number.isFinite(output) && { affordableOutput: output }), ttlMs }
      replyTaken(response, served.policyOf(key), decision, id === undefined ? undefined : more)
    })
  })
}

/** `/v1/add`: spends a piece. 200, or 429 or 422 when it is refused and nothing was spent. */
export function addRoute(engine: Engine): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    const parameters = new Parameters(values, ['hold', 'cost', 'call'])
    return whenDone(engine.holds.add(parameters.id('hold'), parameters.cost('cost', undefined), parameters.call()), (answer) =>
      replyAdded(response, answered(answer)),
    )
  })
}

/** `/v1/close`: ends the work with its true cost. 200 with the state of the key. */
export function closeRoute(engine: Engine): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    const parameters = new Parameters(values, ['hold', 'cost', 'call'])
    const cost = parameters.has('cost') ? parameters.cost('cost', undefined) : undefined
    return whenDone(engine.holds.close(parameters.id('hold'), cost, parameters.call()), (answer) => {
      const { decision, used, over } = answered(answer)
      reply(response, 200, JSON_TYPE, decisionJson(decision, { used, over }))
    })
  })
}

/** Where the cost was said by model: the output tokens that the work may have beside its input; `Infinity` where they are free. */
function affordableOutput(engine: Engine, parameters: Parameters, affordable: number): number | undefined {
  const usage = [parameters.given('most'), parameters.given('expect')].find((given) => typeof given === 'object')
  return usage === undefined ? undefined : engine.costs.affordable({ ...(usage as Usage), output: 0 }, affordable)
}

function askedOf(engine: Engine, parameters: Parameters): WorkAsked {
  const tokens = (name: 'expect' | 'most'): number | undefined =>
    parameters.has(name) ? engine.heldFor(parameters.cost(name, undefined)) : undefined
  const over = parameters.word('over', ['cut', 'wait', 'finish']) ?? 'cut'
  const mostMs = over === 'wait' ? MAX_HOLD_WAIT_MS : MAX_HOLD_MS
  return {
    expect: parameters.given('expect') === 'learned' ? 'learned' : (tokens('expect') ?? 'learned'),
    most: tokens('most') ?? Number.POSITIVE_INFINITY,
    over,
    ttlMs: parameters.milliseconds('ttlMs', LEAST_HOLD_MS, mostMs) ?? DEFAULT_HOLD_MS,
    id: parameters.text('id'),
  }
}

function replyAdded(response: WholeResponse, { isAdded, decision, ...state }: Added): void {
  // Without a decision it is beyond what the work said that it costs at most.
  const { policy, retryAfterMs = Number.POSITIVE_INFINITY } = decision ?? {}
  const outcome = isAdded ? 'allowed' : retryAfterMs === Number.POSITIVE_INFINITY ? 'impossible' : 'denied'
  const refusal = { policy, retryAfterMs, ...(outcome === 'impossible' && { impossible: true }) }
  const body = JSON.stringify({ allowed: isAdded, ...(!isAdded && refusal), ...state })
  const headers: HeaderPair[] = outcome === 'denied' ? [['Retry-After', String(Math.max(1, Math.ceil(retryAfterMs / 1000)))]] : []
  reply(response, STATUS[outcome], JSON_TYPE, body, headers)
}

const FAULTS: Readonly<Record<HoldFault['fault'], readonly [status: number, code: ProblemCode, detail: string]>> = {
  unknown: [
    404,
    'HOLD_UNKNOWN',
    'there is no such hold: it never was, it ended more than its ttlMs ago, it is forgotten, as many others have ended or opened since, its policy was removed, or the service was restarted',
  ],
  closed: [409, 'HOLD_CLOSED', 'this hold was closed'],
  passed: [
    409,
    'CALL_PASSED',
    'a later call of this hold was answered before, and this one was not made: number each call one higher, and open other work with another id',
  ],
}

/** @throws {Problem} where there is no answer. */
function answered<Answer extends object>(answer: Answer | HoldFault): Answer {
  if (!('fault' in answer)) return answer
  const [status, code, detail] = FAULTS[answer.fault]
  throw new Problem(status, code, detail)
}
