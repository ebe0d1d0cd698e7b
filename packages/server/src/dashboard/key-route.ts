import {
  type Awaitable,
  answersOf,
  type Decision,
  type Engine,
  type Key,
  type ServedPolicy,
  StoreError,
  whenDone,
} from '../engine/engine.js'
import { refuseOtherSites } from '../protocols/http/cross-site.js'
import { posting } from '../protocols/http/decide.js'
import { decisionObject } from '../protocols/http/decision-json.js'
import type { Route } from '../protocols/http/handler.js'
import { Parameters } from '../protocols/http/parameters.js'
import { JSON_TYPE, reply } from '../protocols/http/reply.js'

/** A key is looked up in this many policies, the first of the configuration: each is a peek, at a store a call. */
const MAX_POLICIES = 100

/** `/key`: the state of one key in each policy, for the page. In a body, since addresses are logged by proxies. */
export function keyRoute(engine: Engine): Route {
  return posting((values, response) => {
    refuseOtherSites(response.req)
    const key = new Parameters(values, ['key']).key()
    const all = Array.from(engine.policies)
    const states = answersOf(all.slice(0, MAX_POLICIES), (served) => stateOf(served, key))
    return whenDone(states, (policies) => {
      reply(response, 200, JSON_TYPE, JSON.stringify({ policies, policiesLeftOut: Math.max(0, all.length - MAX_POLICIES) }))
    })
  })
}

function stateOf(served: ServedPolicy, key: Key): Awaitable<object> {
  const { name } = served
  const state = (decision: Decision): object => ({ name, state: decisionObject(decision) })
  const outage = (error: unknown): object => {
    if (error instanceof StoreError) return { name, outage: error.code }
    throw error
  }
  try {
    const answer = served.peekUncounted(key, 1)
    return answer instanceof Promise ? answer.then(state, outage) : state(answer)
  } catch (error) {
    return outage(error)
  }
}
