import { type Awaitable, type Engine, type ServedPolicy, whenDone } from '../../engine/engine.js'
import { fromJson } from './decide.js'
import type { Route } from './handler.js'
import { Parameters } from './parameters.js'
import { Problem, refuseOtherSites } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'

/** `/v1/release`: gives a permit back. 200, or 404 when it has ended. */
export function releaseRoute(engine: Engine): Route {
  return ofPermit((id) => engine.permits.release(id), '{"released":true}')
}

/** `/v1/heartbeat`: keeps a permit for its time from now. 200, or 404 when it has ended. */
export function heartbeatRoute(engine: Engine): Route {
  return ofPermit((id) => engine.permits.heartbeat(id), '{"renewed":true}')
}

/** @throws {Problem} for a policy with concurrency, where no permit could be given back. */
export function refusePermits(served: ServedPolicy): void {
  if (!Number.isFinite(served.permitMs)) return
  throw new Problem(400, 'POLICY_UNSUITABLE', 'this policy has permits, which have to be given back: use /v1/take and /v1/release')
}

function ofPermit(change: (id: string) => Awaitable<boolean>, body: string): Route {
  return fromJson((values, response) => {
    refuseOtherSites(response.req)
    return whenDone(change(new Parameters(values, ['permit']).id('permit')), (isHeld) => {
      if (!isHeld) throw new Problem(404, 'PERMIT_UNKNOWN', 'there is no such permit, or it has ended')
      reply(response, 200, JSON_TYPE, body)
    })
  })
}
