import { batchBorrow } from './contenders/batch-borrow.js'
import { luaClientClock } from './contenders/lua-client-clock.js'
import { luaServerClock } from './contenders/lua-server-clock.js'
import { multiExec } from './contenders/multi-exec.js'
import { flexibleOnIoredis, flexibleOnNodeRedis } from './contenders/rate-limiter-flexible.js'
import { exactOnIoredis, exactOnNodeRedis } from './contenders/sluicegate-exact.js'
import { leased } from './contenders/sluicegate-leased.js'
import { watchMultiExec } from './contenders/watch-multi-exec.js'
import type { FleetContenderFactory } from './fleet-contender.js'

/** Everybody who decides for a fleet, by the name in the report; on node-redis where nothing else is said. */
export const FLEET_CONTENDERS = {
  'MULTI/EXEC, racy': multiExec,
  'WATCH/MULTI/EXEC': watchMultiExec,
  "Lua, client's clock": luaClientClock,
  "Lua, server's clock": luaServerClock,
  'batch borrow': batchBorrow,
  'rate-limiter-flexible': flexibleOnNodeRedis,
  'rate-limiter-flexible, ioredis': flexibleOnIoredis,
  'sluicegate exact': exactOnNodeRedis,
  'sluicegate exact, ioredis': exactOnIoredis,
  'sluicegate leased': leased,
} as const satisfies Record<string, FleetContenderFactory>

export type FleetContenderName = keyof typeof FLEET_CONTENDERS

export const FLEET_CONTENDER_NAMES = Object.keys(FLEET_CONTENDERS) as readonly FleetContenderName[]
