import { PolicyError } from './errors.js'

/** @throws {PolicyError} `RUNTIME_UNSUPPORTED` */
function refuse(): never {
  throw new PolicyError(
    'RUNTIME_UNSUPPORTED',
    'sluicegate/durable-objects',
    'node',
    "and sluicegate/workers are for Cloudflare's runtime, which imports the core as a module: here createLimiter() needs neither, and a shared budget has sluicegate/redis or sluicegate/postgres; try a Worker in wrangler dev or Miniflare",
  )
}

// The names that the entries have in that runtime: without them the import fails before this module can say why.
/** What `sluicegate/durable-objects` and `sluicegate/workers` are in Node.js. */
export const durableObjects: never = refuse()
export const limiterObject: never = refuse()
