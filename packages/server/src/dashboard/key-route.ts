import { clientKey } from '../access.js'
import type { Candidate } from '../candidate/candidate.js'
import type { KeyCount } from '../candidate/frequent-keys.js'
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
import { keyDisplay } from '../key-display.js'
import { fromJson } from '../protocols/http/decide.js'
import { decisionObject } from '../protocols/http/decision-json.js'
import type { Route } from '../protocols/http/handler.js'
import { Parameters } from '../protocols/http/parameters.js'
import { refuseOtherSites } from '../protocols/http/problem.js'
import { JSON_TYPE, reply } from '../protocols/http/reply.js'

/** A key is looked up in this many policies, the first of the configuration: each is a peek, at a store a call. */
const MAX_POLICIES = 100

/** `/key`: the state of one key in each policy, for the page. In a body, since addresses are logged by proxies. */
export function keyRoute(engine: Engine): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    const key = new Parameters(values, ['key']).key()
    const all = Array.from(engine.policies)
    const states = answersOf(all.slice(0, MAX_POLICIES), (served) => stateOf(served, key))
    return whenDone(states, (policies) => {
      const network = typeof key === 'string' ? clientKey(key) : key
      const policiesLeftOut = Math.max(0, all.length - MAX_POLICIES)
      reply(response, 200, JSON_TYPE, JSON.stringify({ policies, policiesLeftOut, ...(network !== key && { network }) }))
    })
  })
}

function stateOf(served: ServedPolicy, key: Key): Awaitable<object> {
  const { name } = served
  // In a region `remaining` is what it holds of the key and what the home had when it last answered: one call, mostly not to the home.
  const mode = served.region()?.mode
  const state = (decision: Decision): object => ({ name, state: decisionObject(decision), ...(mode && { mode }) })
  const outage = (error: unknown): object => {
    if (error instanceof StoreError) return { name, outage: error.code }
    throw error
  }
  try {
    const answer = served.uncounted.peek(key, 1)
    return answer instanceof Promise ? answer.then(state, outage) : state(answer)
  } catch (error) {
    return outage(error)
  }
}

const KEYS = 10

/** `/v1/diff`: where the candidate differs from the configuration in force. For scope admin, which may know keys. */
export function diffRoute(candidate: Candidate, engine: Engine): Route {
  const display = keyDisplay('shown')
  const shown = (keys: readonly KeyCount[]): KeyCount[] => keys.map(({ key, count }) => ({ key: display(key), count }))
  return {
    GET(_, response) {
      const { sinceMs, fault, policies, ...rest } = candidate.state(engine, KEYS)
      const body = {
        since: new Date(sinceMs).toISOString(),
        fault: fault ?? null,
        policies: policies.map((each) => ({ ...each, deniedKeys: shown(each.deniedKeys), allowedKeys: shown(each.allowedKeys) })),
        ...rest,
      }
      reply(response, 200, JSON_TYPE, JSON.stringify(body))
    },
  }
}
