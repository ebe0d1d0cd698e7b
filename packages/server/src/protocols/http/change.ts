import { type Awaitable, type Decision, type Engine, type Key, type ServedPolicy, whenDone } from '../../engine/engine.js'
import { fromJson, replyState } from './decide.js'
import type { Route } from './handler.js'
import { Parameters } from './parameters.js'
import { Problem, refuseOtherSites } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'

/** The library's longest block, 100 years. */
const MAX_BLOCK_MS = 100 * 366 * 86_400_000

/** `/v1/refund`: gives tokens back to a key, at most to full. */
export function refundRoute(engine: Engine): Route {
  return changing(engine, ['policy', 'key', 'tokens'], (served, key, parameters) =>
    served.refund(key, parameters.tokens('tokens', undefined)),
  )
}

/** `/v1/penalize`: takes tokens whether they are there or not. */
export function penalizeRoute(engine: Engine): Route {
  return changing(engine, ['policy', 'key', 'tokens'], (served, key, parameters) =>
    served.penalize(key, parameters.tokens('tokens', undefined)),
  )
}

/** `/v1/block`: denies everything to a key for a time; 0 lifts the block. */
export function blockRoute(engine: Engine): Route {
  return changing(engine, ['policy', 'key', 'forMs'], (served, key, parameters) => {
    const forMs = parameters.milliseconds('forMs', 0, MAX_BLOCK_MS)
    if (forMs === undefined) throw new Problem(400, 'PARAMETER_INVALID', 'forMs is missing: give milliseconds, 0 to lift the block')
    return served.block(key, forMs)
  })
}

/** `/v1/reset`: makes a key full, and lifts its block. */
export function resetRoute(engine: Engine): Route {
  return changing(engine, ['policy', 'key'], (served, key) => served.reset(key))
}

function changing(
  engine: Engine,
  known: readonly string[],
  change: (served: ServedPolicy, key: Key, parameters: Parameters) => Awaitable<Decision>,
): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    const parameters = new Parameters(values, known)
    const served = parameters.policy(engine)
    const key = parameters.key(served)
    return whenDone(change(served, key, parameters), (state) => replyState(response, served.policyOf(key), state))
  })
}

/** Longer lists of faults are in the log. */
const MAX_FAULT_CHARACTERS = 4_000

/** `/v1/reload`: reads the configuration again. 200, or 422 with the faults while the configuration before stays in force. */
export function reloadRoute(reload: () => void | Promise<void>, isFault: (error: unknown) => error is Error): Route {
  return {
    async POST(request, response) {
      refuseOtherSites(request)
      try {
        await reload()
      } catch (error) {
        if (!isFault(error)) throw error
        throw new Problem(422, 'CONFIG_INVALID', `the one before stays in force: ${error.message.slice(0, MAX_FAULT_CHARACTERS)}`)
      }
      reply(response, 200, JSON_TYPE, '{"reloaded":true}')
    },
  }
}
