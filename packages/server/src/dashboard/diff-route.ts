import type { Candidate } from '../candidate/candidate.js'
import type { KeyCount } from '../candidate/frequent-keys.js'
import type { Engine } from '../engine/engine.js'
import { keyDisplay } from '../key-display.js'
import type { Route } from '../protocols/http/handler.js'
import { JSON_TYPE, reply } from '../protocols/http/reply.js'

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
