import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { shortOrLong } from 'sluicegate-testkit'
import { plainFacts } from 'sluicegate-testkit/adapters/http-client.js'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { rateLimit as limitExpress } from './adapters/express.js'
import { rateLimit as limitFastify } from './adapters/fastify.js'
import { rateLimit as limitFetch } from './adapters/fetch.js'
import { rateLimit as limitHono } from './adapters/hono.js'
import { rateLimit as limitKoa } from './adapters/koa.js'
import { RateLimit, RateLimitModule } from './adapters/nest.js'
import { primary, serveLimiter } from './cluster/index.js'
import { rateLimit as limitAsBefore, SluicegateStore } from './compat/express-rate-limit/index.js'
import { attachGate, createGate } from './gate/index.js'
import { HeaderWriter } from './http.js'
import {
  allOf,
  attachLimiter,
  concurrency,
  createLimiter,
  createQueue,
  fixedWindow,
  gcra,
  type Limiter,
  type Policy,
  restoreLimiter,
  slidingLog,
  slidingWindow,
  slowDown,
  tokenBucket,
} from './index.js'
import { address, apiKey, header, subject } from './keys/index.js'
import { Middleware } from './middleware/middleware.js'
import { limited as limitedDispatch, limitedFetch } from './outbound/index.js'
import { attachRateTable, createRateTable, restoreRateTable } from './rate-table/index.js'
import { createRedisRateTable, type RedisClient, redis } from './redis/index.js'

// One write to Object.prototype, by a fault of any module in the process, must change no limit. The names of options are collected from the
// errors that list them, so a new option is written there, too.

const POLICY = tokenBucket({ limit: 3, window: '1h' })
const RATE = { maxBurst: 2, count: 3, periodS: 3600 }
const FACTS = plainFacts({})
const REQUEST = new Request('http://a/')

/** A client without a server. */
function deadClient(): RedisClient {
  return { isOpen: true, sendCommand: async () => Promise.reject(new Error('no server')) } as RedisClient
}

/** Takes until denied, and the other verbs: what a limiter does. */
function behaviour(limiter: Limiter): unknown {
  const passed = [1, 2, 3, 4].map(() => limiter.take('a').allowed)
  const { allowed, wouldDeny, source } = limiter.take('a')
  return [
    limiter.policy,
    passed,
    allowed,
    wouldDeny,
    source,
    limiter.peek('b').remaining,
    limiter.reserve('b', 2).allowed,
    limiter.stats().keys,
  ]
}

function limits(middleware: Middleware<object>): unknown {
  return [1, 2, 3, 4].map(() => {
    const result = middleware.handle(FACTS, {})
    return result instanceof Promise ? 'later' : result.passes ? [true, result.headers] : [false, result.status, result.headers]
  })
}

/** Each entry point, and what of it shows. `options` are added to those that it needs. */
const ENTRIES: Readonly<Record<string, (options: object) => unknown>> = {
  tokenBucket: (options) => tokenBucket({ limit: 3, window: '1h', ...options }),
  gcra: (options) => gcra({ limit: 3, window: '1h', ...options }),
  fixedWindow: (options) => fixedWindow({ limit: 3, window: '1h', ...options }),
  'fixedWindow of a calendar': (options) => fixedWindow({ limit: 3, window: 'day', ...options }),
  slidingWindow: (options) => slidingWindow({ limit: 3, window: '1h', ...options }),
  slidingLog: (options) => slidingLog({ limit: 3, window: '1h', ...options }),
  concurrency: (options) => concurrency({ limit: 3, ...options }),
  allOf: (options) => allOf([POLICY], options),
  createLimiter: (options) => behaviour(createLimiter(POLICY, options)),
  'createLimiter of allOf': (options) => behaviour(createLimiter(allOf([POLICY, fixedWindow({ limit: 9, window: '1h' })]), options)),
  'createLimiter with a tier': (options) => {
    const limiter = createLimiter(POLICY, { policyFor: (key) => (key === 'a' ? gcra({ limit: 2, window: '1h' }) : undefined), ...options })
    return [limiter.take('a', 2).allowed, limiter.take('a').allowed, limiter.take('b', 3).allowed]
  },
  attachLimiter: (options) => behaviour(attachLimiter(createLimiter(POLICY).handle(), options)),
  restoreLimiter: (options) => behaviour(restoreLimiter(createLimiter(POLICY, { maxKeys: 10 }).snapshot(), options)),
  wait: (options) => createLimiter(POLICY).wait('a', options),
  run: (options) => createLimiter(POLICY).run('a', () => 1, options),
  wrap: (options) => createLimiter(POLICY).wrap(() => 1, options)(),
  createQueue: (options) => createQueue(createLimiter(POLICY), options).stats(),
  slowDown: (options) => slowDown(createLimiter(POLICY), { after: 1, delay: 5, ...options }).take('a'),
  'slowDown.take': (options) => slowDown(createLimiter(POLICY), { after: 1, delay: 5 }).take('a', options),
  createRateTable: (options) => createRateTable(options).throttle('a', RATE),
  attachRateTable: (options) => attachRateTable(createRateTable().handle(), options).throttle('a', RATE),
  restoreRateTable: (options) => restoreRateTable(createRateTable({ maxKeys: 10 }).snapshot(), options).throttle('a', RATE),
  'createLimiter over Redis': (options) => {
    const limiter = createLimiter(POLICY, { store: redis(deadClient()), ...options })
    return limiter.take('a')
  },
  createRedisRateTable: (options) => createRedisRateTable({ client: deadClient(), ...options }).throttle('a', RATE),
  'createLimiter over a primary': (options) => {
    const limiter = createLimiter(POLICY, { store: primary({ process: channelPair().parent }), ...options })
    const taken = limiter.take('a')
    limiter.close()
    return taken
  },
  serveLimiter: (options) => {
    const served = serveLimiter(POLICY, options)
    return [served.policy, served.limiter.take('a').remaining]
  },
  createGate: (options) => {
    const gate = createGate({ window: '10s', block: 2, ...options })
    for (let i = 0; i < 3; i++) gate.record('a')
    return [gate.count('a'), gate.check('a'), gate.check('b')]
  },
  'threshold of createGate': (options) => createGate({ window: '10s', block: { above: 2, ...options } }).stats(),
  attachGate: (options) => attachGate(createGate({ window: '10s', block: 2 }).handle(), options).check('a'),
  limitedFetch: (options) => limitedFetch(async () => new Response(), options).stats(),
  limited: (options) => limitedDispatch(options).stats(),
  HeaderWriter: (options) => new HeaderWriter(options).write(POLICY, createLimiter(POLICY).take('a'), 'a'),
  address: (options) => address(options).read(FACTS, {}),
  header: (options) => header('host', options).read(FACTS, {}),
  subject: (options) => subject(() => 7, options).read(FACTS, {}),
  apiKey: (options) => apiKey(options).read(FACTS, {}),
  middleware: (options) => limits(new Middleware<object>({ policy: POLICY, ...options })),
  'limits of middleware': (options) => limits(new Middleware<object>({ limits: [{ policy: POLICY, ...options }] })),
  'slowDown of middleware': (options) => limits(new Middleware<object>({ policy: POLICY, slowDown: { after: 9, delay: 1, ...options } })),
  'headers of middleware': (headers) => limits(new Middleware<object>({ policy: POLICY, headers })),
  'onDenied of middleware': (change) => limits(new Middleware<object>({ policy: POLICY, onDenied: () => change })),
  express: (options) => typeof limitExpress({ policy: POLICY, ...options }),
  fastify: (options) => typeof limitFastify({ policy: POLICY, ...options }),
  fetch: (options) => limitFetch({ policy: POLICY, key: () => 'a', ...options })(REQUEST),
  hono: (options) => typeof limitHono({ policy: POLICY, ...options }),
  koa: (options) => typeof limitKoa({ policy: POLICY, ...options }),
  'RateLimitModule of Nest': (options) => Object.keys(RateLimitModule.forRoot({ policy: POLICY, ...options })),
  'place of RateLimitModule': (place) => RateLimitModule.forRoot(POLICY, place).providers?.length,
  'RateLimit of Nest': (options) => typeof RateLimit({ policy: POLICY, ...options }),
  'express-rate-limit': (options) => typeof limitAsBefore({ limit: 3, ...options }),
  SluicegateStore: (options) => new SluicegateStore(options).prefix,
}

/** Names that no error lists. */
const OTHERS = ['maxAge', 'remoteAddress', 'hook', 'global', 'imports', 'inject', 'clock', 'reset', 'calendar']

async function optionNames(): Promise<readonly string[]> {
  const names = new Set(OTHERS)
  for (const make of Object.values(ENTRIES)) {
    try {
      await make({ notAnOption: 1 })
    } catch (error) {
      const [, list = ''] = /^notAnOption: is not one of (.*?)(?:, which are|: did|: | \(got|$)/.exec((error as Error).message) ?? []
      for (const name of list.split(', ')) if (/^\w+$/.test(name)) names.add(name)
    }
  }
  return [...names]
}

/** Only while `run` is called, and nothing else runs: the runtime reads options, too. */
function polluted<Value>(names: readonly string[], value: unknown, run: () => Value): Value {
  const prototype = Object.prototype as unknown as Record<string, unknown>
  try {
    for (const name of names) prototype[name] = value
    return run()
  } finally {
    for (const name of names) delete prototype[name]
  }
}

async function outcome(names: readonly string[], value: unknown, make: () => unknown): Promise<unknown> {
  try {
    return await polluted(names, value, make)
  } catch (error) {
    return `${error}`
  }
}

/** Values that an option takes, and one that none does. */
const VALUES: readonly unknown[] = ['polluted', 7, true, ['a'], () => true, null].slice(0, shortOrLong(1, 6))

const NAMES = await optionNames()

test('the names of options are known', () => {
  for (const name of ['shadow', 'allow', 'burst', 'outage', 'trustedHops', 'onDenied', 'keyGenerator', 'maxWait'])
    assert.ok(NAMES.includes(name), name)
  assert.ok(NAMES.length > 100, `${NAMES.length} names`)
})

for (const [name, make] of Object.entries(ENTRIES)) {
  test(`what stands in Object.prototype is no option of ${name}`, async () => {
    const expected = await outcome([], undefined, () => make({}))
    for (const value of VALUES) {
      const found = await outcome(NAMES, value, () => make({}))
      if (isDeepStrictEqual(found, expected)) continue
      const guilty: string[] = []
      for (const each of NAMES) if (!isDeepStrictEqual(await outcome([each], value, () => make({})), expected)) guilty.push(each)
      assert.deepEqual(found, expected, `${guilty.join(', ')} = ${String(value)}`)
    }
  })
}

test('what was made before keeps its policy and its layers, whatever stands in Object.prototype since', async () => {
  const expected = behaviour(createLimiter(POLICY))
  for (const value of VALUES) {
    const limiter = createLimiter(POLICY)
    assert.deepEqual(await outcome(NAMES, value, () => behaviour(limiter)), expected)
  }
})

test('options of a class are options, also those that it inherits', () => {
  class Defaults {
    get limit(): number {
      return 5
    }
    readonly window = '1m'
  }
  const made = (): Policy => tokenBucket(new Defaults() as { limit: number; window: '1m' })
  assert.equal(made().limit, 5)
  assert.deepEqual(polluted(['limit', 'burst', 'name'], 7, made), tokenBucket({ limit: 5, window: '1m' }))
})
