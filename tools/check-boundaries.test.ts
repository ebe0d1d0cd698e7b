import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundaryFaults } from './check-boundaries.js'

const CORE = 'sluicegate/assembly/'
const LIMITER = 'sluicegate/src/limiter.ts'
const ORACLE = 'testkit/src/oracle/rate-oracle.ts'
const HTTP = 'server/src/protocols/http/take.ts'

const EXPRESS = 'sluicegate/src/adapters/express.ts'
const COMPATIBLE = 'sluicegate/src/compat/express-rate-limit/rate-limit.ts'

/** Files are those of `packages`. */
const CROSSINGS: readonly (readonly [what: string, file: string, source: string])[] = [
  ['a Node.js module in the library', LIMITER, "import { readFileSync } from 'node:fs'"],
  ['a Node.js module in the library, without its prefix', LIMITER, "import fs from 'fs'"],
  ['a dependency in the library', LIMITER, "import { z } from 'zod'"],
  ['a dynamic import in the library', LIMITER, "const zod = await import('zod')"],
  ['a re-export in the library', LIMITER, "export * from 'zod'"],
  ['a type of another package in the library', LIMITER, "export type Schema = import('zod').ZodType"],
  ['a path out of the library', LIMITER, "import { oracle } from '../../testkit/src/oracle.js'"],
  ['the core in the policy', 'sluicegate/src/policy/policy.ts', "import { loadCore } from '../memory/core.js'"],
  ['a table in the algorithms of the core', `${CORE}algorithms/gcra.ts`, 'import { find } from "../table/search"'],
  ['a folder in the shared files of the core', `${CORE}results.ts`, 'import { load } from "./atomics/atomics"'],
  ['the entrance in a table of the core', `${CORE}table/search.ts`, 'import { take } from "../index"'],
  ['the library in the oracle', ORACLE, "import { emissionOf } from 'sluicegate'"],
  ['the library among types in the oracle', ORACLE, "import { type Policy, emissionOf } from 'sluicegate'"],
  ['a limiter in the headers', 'sluicegate/src/headers/quota.ts', "import { createLimiter } from '../create-limiter.js'"],
  ['a limiter in the keys', 'sluicegate/src/keys/address.ts', "import { createLimiter } from '../create-limiter.js'"],
  ['a limiter in a protocol', HTTP, "import { createLimiter } from 'sluicegate'"],
  ['a protocol in another', HTTP, "import { encode } from '../resp/encoder.js'"],
  ['the inside of the library in the server', 'server/src/engine.ts', "import { load } from '../../sluicegate/src/memory/core.js'"],
  [
    'a shared limiter in the limiter in memory',
    'sluicegate/src/memory/core.ts',
    "import { CircuitBreaker } from '../shared/calls/circuit-breaker.js'",
  ],
  ['Redis in a lease', 'sluicegate/src/lease/key-lease.ts', "import type { Store } from '../redis/redis-scripts.js'"],
  [
    'a shared limiter in a lease',
    'sluicegate/src/lease/key-lease.ts',
    "import { CircuitBreaker } from '../shared/calls/circuit-breaker.js'",
  ],
  ['a channel in a shared limiter', 'sluicegate/src/shared/outage/outage.ts', "import { Inbox } from '../../cluster/channel.js'"],
  ['Redis behind a channel', 'sluicegate/src/cluster/channel.ts', "import { hashSlot } from '../redis/redis-keys.js'"],
  ['a channel in Redis', 'sluicegate/src/redis/store.ts', "import { Inbox } from '../cluster/channel.js'"],
  ['the testkit in the server', 'server/src/engine.ts', "import { oracle } from 'sluicegate-testkit'"],
  ['a helper of tests in the library', LIMITER, "import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'"],
  [
    'a type of such a helper in the library',
    'sluicegate/src/redis/store.ts',
    "import type { OwnRedis } from 'sluicegate-testkit/redis/own-redis.js'",
  ],
  ['a helper of tests in the server', 'server/src/engine.ts', "import { runService } from 'sluicegate-testkit/service/running-service.js'"],
  ['the service in a command', 'commands/src/service/top.ts', "import type { Sample } from 'sluicegate-server/dist/dashboard/sample.js'"],
  ['the service in a command, by its path', 'commands/src/load/a.ts', "import { Engine } from '../../../server/src/engine/engine.js'"],
  ['a command in the configuration', 'config/src/tls.ts', "import { UsageError } from 'sluicegate-commands/terminal/usage-error.js'"],
  ['a limiter in memory in a queue', 'sluicegate/src/queue/backlog.ts', "import { MemoryLimiter } from '../memory/memory-limiter.js'"],
  ['what builds keys in outbound requests', 'sluicegate/src/outbound/host.ts', "import { address } from '../keys/address.js'"],
  ['a policy in a sketch', 'sluicegate/src/gate/sketch.ts', "import type { PolicyNumbers } from '../policy/policy-numbers.js'"],
  ['a type that is no contract in a compatible interface', COMPATIBLE, "import type { Layers } from '../../layers/layers.js'"],
  ['a source of the library in the testkit', 'testkit/src/leases/a.ts', "import '../../../sluicegate/src/lease/grant.js'"],
  ['arithmetic of the library in an oracle', ORACLE, "import { emissionOf } from '../../../sluicegate/dist/policy/policy-numbers.js'"],
  ['the testkit in a folder of that name', 'sluicegate/src/redis/testing/a.ts', "import 'sluicegate-testkit'"],
  ['a framework in the library', LIMITER, "import type { Request } from 'express'"],
  ['a framework at run time in its adapter', EXPRESS, "import express from 'express'"],
  ['another framework in an adapter', EXPRESS, "import type { Context } from 'koa'"],
  ['a limiter in an adapter', EXPRESS, "import { createLimiter } from '../create-limiter.js'"],
  ['an adapter in another', EXPRESS, "import { rateLimit } from './koa.js'"],
  ['a part of an adapter in another', EXPRESS, "import { RateLimits } from './nest/rate-limits.js'"],
  [
    'an adapter in the middleware',
    'sluicegate/src/middleware/middleware.ts',
    "import type { RateLimitOptions } from '../adapters/express.js'",
  ],
  ['an adapter in a compatible interface', COMPATIBLE, "import { rateLimit } from '../../adapters/express.js'"],
  ['a framework at run time there', COMPATIBLE, "import express from 'express'"],
  ['another framework there', COMPATIBLE, "import type { Context } from 'koa'"],
  ['a store in the likeness of a middleware', COMPATIBLE, "import { redis } from '../../redis/redis.js'"],
  ['a compatible interface in the middleware', 'sluicegate/src/middleware/a.ts', "import '../compat/limiter-verbs.js'"],
  ['a benchmark in a test', 'sluicegate/src/limiter.test.ts', "import { run } from '../../../bench/src/harness.js'"],
]

for (const [what, file, source] of CROSSINGS) {
  test(`the boundary check finds ${what}`, () => {
    const faults = boundaryFaults(`packages/${file}`, `// first line\n${source}\n`)
    assert.notEqual(faults.length, 0)
    assert.match(faults[0] ?? '', new RegExp(`^packages/${file}:2 imports '`))
  })
}

const ALLOWED: readonly (readonly [what: string, file: string, source: string])[] = [
  ['an adapter the types of its framework', EXPRESS, "import type { Request } from 'express'"],
  ['the adapter of Nest its framework', 'sluicegate/src/adapters/nest/rate-limits.ts', "import { HttpException } from '@nestjs/common'"],
  ['an adapter its own parts', 'sluicegate/src/adapters/nest.ts', "import { RateLimits } from './nest/rate-limits.js'"],
  ['the library its own files', LIMITER, "import { loadCore } from './memory/core.js'"],
  ['a test of the library the testkit and Node.js', 'sluicegate/src/a.test.ts', "import 'node:test'; import 'sluicegate-testkit'"],
  ['a test what tests share', 'sluicegate/src/redis/a.test.ts', "import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'"],
  ['a command the configuration', 'commands/src/replay/a.ts', "import { readConfig } from 'sluicegate-config/read-config.js'"],
  ['a test of a command the service', 'commands/src/load/a.test.ts', "import 'sluicegate-testkit/service/running-service.js'"],
  ['a queue what all limiters have', 'sluicegate/src/queue/a.ts', "import type { Limiter } from '../limiter.js'"],
  ['the testkit the compiled library', 'testkit/src/leases/a.ts', "import { grant } from '../../../sluicegate/dist/lease/grant.js'"],
  ['the oracle types of the library', ORACLE, "import type { Policy } from 'sluicegate'; import { type Decision } from 'sluicegate'"],
  [
    'headers a policy',
    'sluicegate/src/headers/quota.ts',
    "import { toMs } from '../time/duration.js'; import type { Key } from '../limiter.js'",
  ],
  ['a protocol what HTTP says of decisions', HTTP, "import { rateLimitHeaders } from 'sluicegate/http'"],
  ['a protocol the engine', HTTP, "import { Engine } from '../../engine.js'; import { headers } from './headers.js'"],
]

for (const [what, file, source] of ALLOWED) {
  test(`the boundary check allows ${what}`, () => {
    assert.deepEqual(boundaryFaults(`packages/${file}`, source), [])
  })
}
