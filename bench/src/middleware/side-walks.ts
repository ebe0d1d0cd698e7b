import type { Walk } from '../walk.js'
import { clientAddresses } from './client-addresses.js'
import { exchange, LightSocket } from './exchange.js'
import { exchangeWalk } from './exchange-walk.js'
import type { MiddlewareSetting, Side } from './middleware-setting.js'
import { forEachSide } from './side-runs.js'
import { SITES } from './site.js'

/** Requests to the app of each side, without sockets. Every client was there once: a limiter that denies has nothing left for it. */
export async function sideWalks({ framework, options, outcome, clients }: MiddlewareSetting): Promise<Record<Side, Walk>> {
  const connections = clientAddresses(clients).map((address) => new LightSocket(address))
  return forEachSide(async (side) => {
    const site = await SITES[framework]({ side, options, outcome, behindProxy: false })
    for (const connection of connections) await exchange(site, connection)
    return exchangeWalk(site, connections)
  })
}
