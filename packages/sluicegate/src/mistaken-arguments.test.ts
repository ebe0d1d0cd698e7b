// What is written by mistake again and again, and what is said of it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { test } from 'node:test'
import { inspect } from 'node:util'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { listening } from 'sluicegate-testkit/adapters/harness.js'
import { rateLimit as limitExpress } from './adapters/express.js'
import { rateLimit as limitFastify } from './adapters/fastify.js'
import { rateLimit as limitFetch } from './adapters/fetch.js'
import { rateLimit as limitHono } from './adapters/hono.js'
import { rateLimit as limitKoa } from './adapters/koa.js'
import { RateLimit, RateLimitModule } from './adapters/nest.js'
import { primary, serveLimiter } from './cluster/index.js'
import { HeaderWriter } from './http.js'
import * as everything from './index.js'
import { allOf, attachLimiter, concurrency, createLimiter, fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from './index.js'
import { address, apiKey, header, method, route, subject } from './keys/index.js'
import { limitedFetch } from './outbound/index.js'
import { postgres } from './postgres/index.js'
import { createQueue } from './queue/create-queue.js'
import { checkedRunOptions } from './queue/queue-options.js'
import { redis } from './redis/index.js'
import { region } from './regions/index.js'
import { casStore } from './store/index.js'
import { memoryStore } from './store-testing/index.js'

const policy = tokenBucket({ limit: 5, window: '1m' })

/** The message of what a call throws; its argument is of no type that it takes. */
function said(call: (wrong: never) => unknown, wrong: unknown): string {
  try {
    call(wrong as never)
  } catch (error) {
    return (error as Error).message
  }
  return assert.fail('nothing was thrown')
}

test('allOf without brackets says where they belong', () => {
  const [a, b] = [tokenBucket({ limit: 1, window: '1s' }), fixedWindow({ limit: 9, window: '1m' })]
  assert.match(
    said((each) => allOf(each, b as never), a),
    /say allOf\(\[a, b\]\)/,
  )
  assert.match(
    said((each) => allOf(each), a),
    /say allOf\(\[a, b\]\)/,
  )
  assert.match(
    said((each) => allOf([a] as never, each), b),
    /say allOf\(\[a, b\]\)/,
  )
})

const store = casStore(memoryStore())

const MISSPELT: readonly (readonly [what: string, call: (options: never) => unknown, options: object, meant: string])[] = [
  ['tokenBucket()', tokenBucket, { limit: 5, windwo: '1m' }, 'window'],
  ['gcra()', gcra, { limit: 5, window: '1m', bursts: 1 }, 'burst'],
  ['fixedWindow()', fixedWindow, { limit: 5, window: 'day', timezone: 'UTC' }, 'timeZone'],
  ['slidingWindow()', slidingWindow, { limit: 5, windows: '1m' }, 'window'],
  ['slidingLog()', slidingLog, { limits: 5, window: '1m' }, 'limit'],
  ['concurrency()', concurrency, { limit: 5, tll: '1s' }, 'ttl'],
  ['createLimiter()', (options) => createLimiter(policy, options), { maxkeys: 5 }, 'maxKeys'],
  ['attachLimiter()', (options) => attachLimiter(createLimiter(policy).handle(), options), { clok: 5 }, 'clock'],
  ['wait()', (options) => createLimiter(policy).wait('k', options), { maxWaitMs: 5 }, 'maxWait'],
  ['redis()', (options) => redis({} as never, options), { prefx: 'a' }, 'prefix'],
  ['primary()', primary, { proces: {} }, 'process'],
  ['createLimiter() over a store', (options) => createLimiter(policy, options), { store, timeoutMs: 5 }, 'timeout'],
  ['serveLimiter()', (options) => serveLimiter(policy, options), { clusters: {} }, 'cluster'],
  ['address()', address, { trustedHop: 1 }, 'trustedHops'],
  ['apiKey()', apiKey, { headers: 'a' }, 'header'],
  ['header()', (options) => header('a', options), { otherwhise: address() }, 'otherwise'],
  ['subject()', (options) => subject(() => 'a', options), { otherwse: address() }, 'otherwise'],
  ['headers', (options) => new HeaderWriter(options), { versoin: 'draft-7' }, 'version'],
  ['rateLimit()', limitExpress, { policy, onDenid: () => undefined }, 'onDenied'],
  ['each of limits', limitKoa, { limits: [{ policy, kye: () => 'a' }] }, 'key'],
]

for (const [what, call, options, meant] of MISSPELT) {
  test(`${what}: the error for a misspelt option names its owner and suggests the right one`, async () => {
    let message = ''
    try {
      await call(options as never)
    } catch (error) {
      message = (error as Error).message
    }
    assert.ok(message.includes(`did you mean ${meant}?`), message)
    assert.ok(message.includes(what), message)
  })
}

test('an unknown name gets no suggestion, however long it is', () => {
  for (const name of ['colour', 'x', 'window'.repeat(10_000)])
    assert.doesNotMatch(said(tokenBucket, { limit: 1, window: 1, [name]: 1 }), /did you mean/)
})

test('the error for an option of another limiter names that limiter', () => {
  for (const options of [{ windowMs: 60_000, max: 5 }, { windowMs: 60_000, limit: 5 }, { limit: 5, windowMs: 60_000 }, { max: 5 }]) {
    assert.match(said(limitExpress, options), /sluicegate\/express-rate-limit/)
  }
  assert.match(said(limitKoa, { points: 5, duration: 1 }), /moving-from-rate-limiter-flexible/)
  assert.match(said(limitFastify, { limit: 5, window: '1m' }), /policy: tokenBucket\(\{ limit: 100, window: '1m' \}\)/)
})

test('the error for an option under its name in another library says how it is called or written here', () => {
  const over = (options: object) => said((each) => createLimiter(policy, each), options)
  for (const name of ['allowlist', 'allowList', 'whitelist']) {
    assert.match(over({ [name]: ['a'] }), /did you mean allow\?/)
    assert.match(said(limitExpress, { policy, [name]: ['a'] }), /say \{ limiter: createLimiter\(policy, \{ allow \}\) \}/)
  }
  for (const name of ['blacklist', 'blocklist', 'denylist']) assert.match(over({ [name]: ['a'] }), /did you mean deny\?/)
  for (const name of ['redis', 'redisClient', 'storeClient']) {
    for (const message of [over({ [name]: {} }), said(limitExpress, { policy, [name]: {} })])
      assert.match(message, /give it to a store, such as redis\(client\)/)
  }
  assert.match(said(address, { trustProxy: 1 }), /did you mean trustedHops\?/)
  assert.match(said(limitExpress, { policy, trustProxy: 1 }), /give it to the key: address\(\{ trustedHops: … \}\)/)
  assert.match(said(limitExpress, { policy, delayAfter: 5 }), /say slowDown: \{ after: 50, delay: '100ms' \}/)
  assert.match(said(limitExpress, { policy, skipOnError: true }), /outage: 'open'/)
  assert.match(over({ retries: 3 }), /give it to limitedFetch\(fetch, \{ attempts \}\)/)
  assert.match(over({ limit: 5 }), /numbers belong into a policy: tokenBucket\(/)
  assert.match(over({ windowMs: 5 }), /sluicegate\/express-rate-limit/)
  assert.match(said(tokenBucket, { max: 5, windowMs: 60_000 }), /did you mean limit\?/)
  assert.match(said(tokenBucket, { limit: 5, windowMs: 60_000 }), /did you mean window\?/)
  assert.match(said(limitFastify, { max: 5, timeWindow: '1 minute' }), /numbers belong into a policy/)
  assert.match(
    said((each) => createQueue(createLimiter(policy), each), { maxConcurrent: 5 }),
    /did you mean concurrency\?/,
  )
  assert.doesNotMatch(said(fixedWindow, { limit: 5, window: '1m', burst: 5 }), /numbers belong/)
})

test('the error for a value that is no policy says how to make one', () => {
  assert.match(said(createLimiter, { limit: 5, window: '1m' }), /createLimiter\(tokenBucket\(\{ limit, window \}\)\)/)
  assert.match(said(createLimiter, { limit: 5 }), /createLimiter\(tokenBucket\(\{ limit: 100, window: '1m' \}\)\)/)
  assert.match(said(createLimiter, tokenBucket), /call it/)
  assert.match(said(createLimiter, Promise.resolve(policy)), /await it/)
  assert.match(said(createLimiter, { policy, maxKeys: 5 }), /createLimiter\(policy, options\)/)
  assert.match(
    said((each) => createLimiter(each, { store }), { limit: 5, window: '1m' }),
    /createLimiter\(tokenBucket\(\{ limit, window \}\)\)/,
  )
})

test('the error for a policy as a file of configuration has it names the function of its algorithm', () => {
  const bucket = { algorithm: 'token-bucket', limit: 5, window: '1m' }
  assert.match(said(createLimiter, bucket), /say createLimiter\(tokenBucket\(\{ limit, window \}\)\)/)
  assert.match(said(limitExpress, { ...bucket, algorithm: 'fixed-window' }), /say rateLimit\(fixedWindow\(\{ limit, window \}\)\)/)
  assert.match(
    said(createLimiter, { algorithm: 'concurrency', limit: 5, ttl: '1m' }),
    /say createLimiter\(concurrency\(\{ limit, ttl \}\)\)/,
  )
  assert.match(said(limitExpress, { ...policy, key: address() }), /key: is no part of a policy/)
})

test('a number that is text, as variables of the environment are, is said to be text', () => {
  const text = '100' as never
  assert.match(
    said((limit) => tokenBucket({ limit, window: '1m' }), text),
    /limit: must be an integer .* \(got the text "100"\)/,
  )
  assert.match(
    said((cost) => createLimiter(policy).take('ada', cost), text),
    /\(got the text "100"\)/,
  )
})

test('an error that is printed says once what to do', () => {
  try {
    tokenBucket({ limit: 0, window: '1m' })
  } catch (error) {
    assert.equal(inspect(error).split('must be an integer').length, 2)
  }
})

test('the error for options of other libraries in place of a policy says what takes them', () => {
  assert.throws(() => createLimiter({ windowMs: 60_000, max: 100 } as never), /sluicegate\/express-rate-limit/)
  assert.throws(() => createLimiter({ points: 5, duration: 1 } as never), /moving-from-rate-limiter-flexible/)
})

test('a policy in the place of options is no mistake of another library, and neither is max of a hold', () => {
  assert.match(
    said((each) => limitedFetch(fetch, each), policy),
    /are the options of limitedFetch\(\) and limited\(\): say \{ policy \} /,
  )
  assert.match(
    said((each) => createLimiter(policy).open('ada', each), { max: 5 }),
    /are the options of open\(\): did you mean most\?/,
  )
})

test('what is no store is refused where one is given, with what to write instead', () => {
  const client = { sendCommand: async () => undefined, multi: () => undefined }
  const mine = memoryStore()
  for (const wrong of [client, mine, redis, 'redis://127.0.0.1', null, false, '']) {
    for (const message of refusals(wrong)) assert.match(message, /^(store|local|home): must be a store, such as redis\(client\)/)
  }
  for (const message of refusals(Promise.resolve(store))) assert.match(message, /await it/)
  assert.match(
    said((options) => createLimiter(policy, options), store),
    /say \{ store \}/,
  )
  assert.match(said(limitExpress, store), /rateLimit\(\{ policy, store \}\)/)
  assert.match(
    said((second) => (limitExpress as (...all: unknown[]) => unknown)(policy, second), store),
    /rateLimit\(\{ policy, store \}\)/,
  )
  assert.match(said(redis, Promise.resolve(client)), /redis\(await createClient\(\)\.connect\(\)\)/)
  assert.match(said(postgres, Promise.resolve(client)), /await it/)
})

function refusals(wrong: unknown): string[] {
  return [
    said((each) => createLimiter(policy, { store: each }), wrong),
    said((each) => limitExpress({ policy, store: each }), wrong),
    said((each) => limitExpress({ policy: () => policy, store: each }), wrong),
    said((each) => limitExpress({ limits: [{ policy, store: each }] }), wrong),
    said((each) => RateLimitModule.forRoot({ store: each }), wrong),
    said((each) => region({ name: 'a', local: each, home: store }), wrong),
    said((each) => region({ name: 'a', local: store, home: each }), wrong),
  ]
}

test('an option of the limiter that the store is given, or the other way round, is sent where it belongs', () => {
  const over = (options: object) => said((each) => createLimiter(policy, each), options)
  assert.match(over({ client: {} }), /give it to a store, such as redis\(client\)/)
  assert.match(
    said((each) => limitedFetch(fetch, each), { policy, store }),
    /createLimiter\(policy, \{ store \}\)/,
  )
  assert.match(over({ store, prefix: 'eu' }), /redis\(client, \{ prefix \}\)/)
  assert.match(over({ store: undefined, mode: 'exact' }), /createLimiter\(policy, \{ store, mode \}\)/)
  assert.match(said(limitExpress, { policy, store, mode: 'exact' }), /createLimiter\(policy, \{ store, mode \}\)/)
  assert.match(
    said((each) => casStore(memoryStore(), each), { timeout: 5 }),
    /createLimiter\(policy, \{ store, timeout \}\)/,
  )
})

test('an option of the limiter, or of its queue, that middleware or another function is given is sent where it belongs', () => {
  for (const option of ['clock', 'maxKeys', 'policyFor', 'deny', 'soft', 'ledger']) {
    assert.ok(said(limitExpress, { policy, [option]: 5 }).includes(`say { limiter: createLimiter(policy, { ${option} }) }`), option)
  }
  const queued = /give it to createQueue\(limiter, \{ concurrency \}\)/
  assert.match(
    said((each) => createLimiter(policy, each), { concurrency: 4 }),
    queued,
  )
  assert.match(
    said((each) => checkedRunOptions(each, {} as never), { concurrency: 4 }),
    queued,
  )
  // By its name of now.
  const given = said((each) => createLimiter(policy, each), { localShare: 0.5 })
  assert.match(given, /give it to createLimiter\(policy, \{ store, share \}\)/)
  assert.match(
    said((each) => createLimiter(policy, each), { maxQueuedPerKey: 4 }),
    /give it to createQueue\(limiter, \{ maxWaitingPerKey \}\)/,
  )
})

test('a key reader that was not called says so to the first request', async () => {
  const request = { method: 'GET', path: '/', header: () => undefined, headers: {} }
  for (const [reader, what] of [
    [apiKey, 'apiKey'],
    [address, 'address'],
  ] as const) {
    assert.match(said(reader as never, request), new RegExp(`^key: must be what ${what}\\(\\) returns: write key: ${what}\\(\\)`))
    assert.match(said(reader as never, { req: request, res: {} }), /write key: /)
  }
})

test('an option under an earlier name is sent to its new one, and what is automatic now is left out', () => {
  const over = (options: object) => said((each) => createLimiter(policy, each), options)
  assert.match(over({ maxWaiters: 5 }), /did you mean maxWaiting\?/)
  assert.match(over({ growTo: 5 }), /did you mean maxKeys\?/)
  assert.match(over({ plans: {} }), /did you mean policyFor\?/)
  assert.match(over({ queue: {} }), /make one with these bounds: createQueue\(limiter/)
  assert.match(
    said((each) => createQueue(createLimiter(policy), each), { paused: true }),
    /call pause\(\) of the queue/,
  )
  assert.match(over({ store, localShare: 0.5 }), /did you mean share\?/)
  for (const option of ['newcomers', 'slotBytes', 'counters']) assert.match(over({ [option]: 5 }), /: leave it out, it is automatic/)
  assert.match(over({ store, horizonMs: 5 }), /did you mean lease\?/)
  assert.match(
    said((each) => createQueue(createLimiter(policy), each), { maxQueuedPerKey: 5 }),
    /did you mean maxWaitingPerKey\?/,
  )
  // A name that the new one is not known beside gets no hint of it.
  assert.doesNotMatch(
    said((each) => createQueue(createLimiter(policy), each), { growTo: 5 }),
    /maxKeys\?/,
  )
})

test('a region is made of two stores that hold budgets', () => {
  const here = redis({ sendCommand: async () => '', isOpen: true, listenerCount: () => 1 } as never)
  const made = region({ name: 'a', local: here, home: store })
  const parent = { send: () => true, on: () => undefined, off: () => undefined }
  for (const home of [made, primary({ process: parent as never })]) {
    assert.match(
      said((each) => region({ name: 'b', local: here, home: each }), home),
      /^home: cannot be (region a|primary): give redis/,
    )
  }
  assert.match(
    said((each) => region({ name: 'b', local: each, home: store }), made),
    /^local: cannot be region a: give redis/,
  )
})

test('rateLimit of the main entry point says where the middleware is', () => {
  const { rateLimit } = everything as unknown as { rateLimit(policy: unknown): never }
  assert.match(said(rateLimit, policy), /'sluicegate\/express', or \/fastify, .*createLimiter\(policy\)/)
})

test('a limiter or a policy that is still a promise is to be waited for', () => {
  assert.match(said(limitExpress, Promise.resolve(policy)), /await it/)
})

test('the error names the route whose option does not exist', async () => {
  const app = fastify()
  app.register(limitFastify(policy))
  app.after(() => {
    const wrong = { policy, kye: () => 'all' }
    const route = (): unknown => app.post('/login', { config: { rateLimit: wrong as never } }, async () => 'ok')
    assert.match(said(route, undefined), /^config\.rateLimit of POST \/login: kye: is not one of .* did you mean key\?/)
  })
  await app.ready()
  await app.close()
})

test('rateLimit itself in the place of what it makes says what to write', async () => {
  const app = express()
  app.use(limitExpress as never)
  const caught: express.ErrorRequestHandler = (error, _request, response, _next) => void response.status(500).send(error.message)
  app.use(caught)
  const koa = new Koa({ env: 'test' })
  koa.silent = true
  koa.on('error', () => undefined)
  koa.use(async (context, next) => {
    try {
      await next()
    } catch (error) {
      context.body = (error as Error).message
    }
  })
  koa.use(limitKoa as never)
  for (const handler of [app, koa.callback()] as RequestListener[]) {
    assert.match(await answerOf(handler), /write app\.use\(rateLimit\(policy\)\) instead of app\.use\(rateLimit\)/)
  }
  const hono = new Hono().use(limitHono as never).onError((error, context) => context.text(error.message))
  assert.match(await (await hono.request('/')).text(), /write app\.use\(rateLimit\(policy\)\) instead of app\.use\(rateLimit\)/)
  assert.match(said(limitFetch, new Request('http://a/')), /must be a policy, and not a request: write /)
  // Fastify lets what its plugins throw end the process, with this text.
  assert.match(said(limitFastify, fastify()), /write app\.register\(rateLimit\(policy\)\) instead of app\.register\(rateLimit\)/)
})

test('middleware of another framework says which entry point is meant', async () => {
  const makers: Record<string, unknown> = {
    express: limitExpress,
    fastify: limitFastify,
    hono: limitHono,
    koa: limitKoa,
    fetch: limitFetch,
  }
  const answers: Record<string, (made: never) => Promise<string>> = {
    express: (made) => {
      const app = express().use(made)
      const caught: express.ErrorRequestHandler = (error, _request, response, _next) => void response.status(500).send(error.message)
      return answerOf(app.use(caught))
    },
    hono: async (made) => {
      const app = new Hono().use(made).onError((error, context) => context.text(error.message))
      return (await app.request('/')).text()
    },
    koa: (made) => {
      const koa = new Koa({ env: 'test' }).use(async (context, next) => {
        await next().catch((error: Error) => (context.body = error.message))
      })
      return answerOf(koa.use(made).callback())
    },
    fetch: async (made) => said((limit: (request: Request) => unknown) => limit(new Request('http://a/')), made),
    // Fastify lets what its plugins throw end the process, with this text.
    fastify: async (made) => said((plugin: (...given: unknown[]) => unknown) => plugin(fastify(), {}, () => undefined), made),
  }
  for (const [framework, answer] of Object.entries(answers)) {
    for (const [entry, make] of Object.entries(makers)) {
      const wanted = `is that of 'sluicegate/${entry}', and another framework calls it: import { rateLimit } from 'sluicegate/${framework}'`
      const isAsync = entry === 'koa' || entry === 'hono'
      if (entry === framework || (isAsync && (framework === 'fetch' || framework === 'fastify'))) continue
      assert.ok((await answer((make as (each: object) => never)(policy))).includes(wanted), `${entry} in ${framework}`)
    }
  }
  for (const limit of [limitKoa(policy), limitHono(policy)]) {
    for (const given of [new Request('http://a/'), fastify()]) {
      await assert.rejects((limit as (...given: unknown[]) => Promise<unknown>)(given), /and another framework calls it: import/)
    }
  }
})

async function answerOf(handler: RequestListener): Promise<string> {
  const server = await listening(createServer(handler))
  const text = await (await fetch(`http://127.0.0.1:${server.port}/`)).text()
  await server.close()
  return text
}

test('a policy in the place of middleware: frameworks look at its type alone, and say what docs/errors.md says of them', async () => {
  const said: string[] = []
  const use = (call: () => unknown): void => {
    try {
      call()
    } catch (error) {
      said.push((error as Error).message)
    }
  }
  // A look at any member would let a policy answer in its own words.
  const watched = new Proxy(policy, { get: (_, name) => assert.fail(`reads ${String(name)}`) }) as never
  use(() => express().use(watched))
  use(() => new Koa({ env: 'test' }).use(watched))
  const hono = new Hono().use(watched).get('/', (context) => context.text('passed'))
  hono.onError(({ message }, context) => {
    said.push(message)
    return context.text('', 500)
  })
  assert.equal((await hono.request('/')).status, 500)
  const app = fastify()
  await assert.rejects(
    async () => app.register(policy as never),
    ({ message }: Error) => said.push(message) > 0,
  )
  await app.close()
  const page = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8')
  assert.equal(said.length, 4)
  for (const message of said) assert.ok(page.includes(`\`${message}\``), message)
})

const LIMITS = {
  'rateLimit of express': limitExpress,
  'rateLimit of fastify': limitFastify,
  'rateLimit of hono': limitHono,
  'rateLimit of koa': limitKoa,
  'rateLimit of fetch': limitFetch,
  '@RateLimit': RateLimit,
  'RateLimitModule.forRoot': RateLimitModule.forRoot,
} as const satisfies Record<string, (...wrong: never[]) => unknown>

for (const [name, limit] of Object.entries(LIMITS)) {
  const takenBy = name.replace(/ of .*/, '')
  const key = (): string => 'ada'

  test(`${name}: options behind a policy are refused, where they would count for nothing`, () => {
    const call = limit as (...wrong: unknown[]) => unknown
    for (const first of [policy, createLimiter(policy), { policy }]) {
      assert.match(
        said(() => call(first, { key }), first),
        /one object.*(policy|limiter), key/,
      )
    }
  })

  test(`${name}: an array of policies says where several limits belong`, () => {
    assert.ok(said(limit as never, [policy, policy]).includes(`say ${takenBy}({ limits: [{ policy, key }, ...] })`))
  })

  test(`${name}: a function alone says where it belongs`, () => {
    assert.ok(said(limit as never, () => policy).includes(`${takenBy}({ policy: (request) => ... })`))
  })

  test(`${name}: the error for a misspelt option has its name`, () => {
    assert.ok(said(limit as never, { policy, kye: key }).includes(`which are the options of ${takenBy}(): did you mean key?`))
  })
}

test('a key part that takes nothing refuses a route or a method, which it would limit nothing by', () => {
  assert.match(said(route, '/login'), /^route\(\): it is the route that a request matched: leave out the argument, .*\(got "\/login"\)/)
  assert.match(said(method, 'POST'), /^method\(\): it is the method of a request: leave out the argument/)
})

test('an array of policies may be mapped to limits', () => {
  assert.equal([policy, policy].map(limitExpress as (each: typeof policy) => unknown).length, 2)
})

test('errors inside slowDown and banAfter have the option’s name', () => {
  const slowed = (slowDown: never): unknown => limitExpress({ policy, slowDown })
  const banned = (banAfter: never): unknown => createLimiter(policy, { banAfter })
  assert.match(said(slowed, true), /^slowDown: must be an object such as/)
  assert.match(said(slowed, { after: 1, delay: 1, delayAfter: 3 }), /which are the options of slowDown/)
  assert.match(said(banned, true), /^banAfter: must be an object such as/)
  assert.match(said(banned, { denials: 1, within: '1m', for: '1m', factr: 2 }), /which are the options of banAfter: did you mean factor\?/)
})
