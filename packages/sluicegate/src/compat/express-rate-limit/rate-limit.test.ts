import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import express, { type Request, type Response } from 'express'
import express4 from 'express4'
import { listening } from 'sluicegate-testkit/adapters/harness.js'
import { ask, openRequest } from 'sluicegate-testkit/adapters/http-client.js'
import { clock, here, MINUTE, site, statuses, usedBy } from 'sluicegate-testkit/adapters/rate-limit-site.js'
import { channelPair } from 'sluicegate-testkit/cluster/channel-pair.js'
import { turnsUntil } from 'sluicegate-testkit/turns.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { primary, serveLimiter } from '../../cluster/index.js'
import { createLimiter, type Decision, fixedWindow, type Limiter, type Policy, StoreError } from '../../index.js'
import defaultExport, { countingPolicy, MemoryStore, type Options, type RateLimitInfo, rateLimit, SluicegateStore } from './index.js'

freshWarnings()

test('the default is five a minute, with the older headers', async (t) => {
  const app = express()
  app.use(defaultExport())
  const { port, close } = await listening(createServer(app))
  t.after(close)
  const { headers } = await ask(port, '/')
  assert.equal(headers['x-ratelimit-limit'], '5')
  assert.equal(headers['x-ratelimit-remaining'], '4')
})

test('what is above the limit is denied until the window ends, and costs nothing', async (t) => {
  const app = await site(t, {})
  assert.deepEqual(await statuses(app, '/', '/', '/', '/'), [200, 200, 429, 429])
  assert.equal((await app.limit.getKey('127.0.0.1'))?.totalHits, 3)
  clock.advance(MINUTE)
  assert.deepEqual(await statuses(app, '/', '/', '/'), [200, 200, 429])
})

test('Express 4 is as good as 5', async (t) => {
  const app = await site(
    t,
    { skipFailedRequests: true, standardHeaders: 'draft-8', message: { error: 'slow down' } },
    express4 as unknown as typeof express,
  )
  assert.deepEqual(await statuses(app, '/status/404', '/', '/'), [404, 200, 200])
  const { status, headers, text } = await app.ask()
  assert.deepEqual([status, headers['ratelimit-policy'], text], [429, '"2-in-1min";q=2;w=60', '{"error":"slow down"}'])
})

test('a middleware that is there twice is warned of', async (t) => {
  const warned: unknown[] = []
  const listen = ({ code }: Error & { code?: string }): unknown => warned.push(code)
  process.on('warning', listen)
  const limit = rateLimit({ create: here })
  const app = express()
  app.use(limit, limit)
  const { port, close } = await listening(createServer(app))
  t.after(close)
  await ask(port, '/')
  process.off('warning', listen)
  assert.ok(warned.includes('SLUICEGATE_COUNTED_TWICE'))
})

test('a key can begin anew', async (t) => {
  const app = await site(t, {})
  assert.equal(await app.limit.getKey('127.0.0.1'), undefined)
  assert.deepEqual(await statuses(app, '/', '/', '/'), [200, 200, 429])
  await app.limit.resetKey('127.0.0.1').then()
  assert.equal(await app.limit.getKey('127.0.0.1'), undefined)
  assert.deepEqual(await statuses(app, '/'), [200])
})

test('handlers find the count on the request, under the name that was asked for', async (t) => {
  const seen: RateLimitInfo[] = []
  const handler = (request: Request, response: Response): void => {
    seen.push((request as never as { count: RateLimitInfo }).count)
    response.status(418).send('no')
  }
  const app = await site(t, { limit: 1, requestPropertyName: 'count', handler, keyGenerator: () => 'all' })
  assert.deepEqual(await statuses(app, '/', '/'), [200, 418])
  const [{ resetTime, ...info }] = seen as [RateLimitInfo & { current: number }]
  assert.deepEqual(info, { limit: 1, used: 2, remaining: 0, key: 'all' })
  assert.ok(resetTime instanceof Date)
  assert.equal((seen[0] as RateLimitInfo & { current: number }).current, 2)
})

test('what does not count comes back when its response has ended', async (t) => {
  const failures = await site(t, { skipSuccessfulRequests: true })
  assert.deepEqual(await statuses(failures, '/', '/', '/'), [200, 200, 200])
  await turnsUntil(async () => (await usedBy(failures)) === 0)
  assert.deepEqual(await statuses(failures, '/status/404', '/status/500', '/'), [404, 500, 429])
  const successes = await site(t, { skipFailedRequests: true })
  assert.deepEqual(await statuses(successes, '/status/404', '/status/500', '/status/400'), [404, 500, 400])
  await turnsUntil(async () => (await usedBy(successes)) === 0)
  assert.deepEqual(await statuses(successes, '/', '/', '/', '/'), [200, 200, 429, 429], 'a denial gives nothing back')
  assert.equal(await usedBy(successes), 3)
})

test('requestWasSuccessful decides, also by a promise, and if it fails the request counts', async (t) => {
  const own = await site(t, { skipSuccessfulRequests: true, requestWasSuccessful: async (_request, { statusCode }) => statusCode === 404 })
  assert.deepEqual(await statuses(own, '/status/404', '/status/404'), [404, 404])
  await turnsUntil(async () => (await usedBy(own)) === 0)
  assert.deepEqual(await statuses(own, '/', '/', '/'), [200, 200, 429])
  for (const fails of [() => Promise.reject(new Error('later')), () => assert.fail('now'), () => Promise.reject()]) {
    const logged: unknown[] = []
    const logger = { error: (error: unknown) => void logged.push(error) }
    const app = await site(t, { skipSuccessfulRequests: true, requestWasSuccessful: fails, logger })
    assert.deepEqual(await statuses(app, '/', '/', '/'), [200, 200, 429])
    await turnsUntil(() => logged.length === 2)
  }
})

test('whose client breaks off counts', async (t) => {
  const app = await site(t, { skipFailedRequests: true, skipSuccessfulRequests: true })
  const open = openRequest(app.port, '/open')
  await open.begun
  open.hangUp()
  assert.deepEqual(await statuses(app, '/'), [200])
  await turnsUntil(async () => (await usedBy(app)) === 1)
  assert.deepEqual(await statuses(app, '/', '/', '/'), [200, 200, 200])
})

test('a skipped request is neither counted nor described', async (t) => {
  const app = await site(t, { limit: 1, skip: async ({ path }) => path.startsWith('/status') })
  assert.deepEqual(await statuses(app, '/status/200', '/status/200', '/', '/', '/status/200'), [200, 200, 200, 429, 200])
  assert.equal((await app.ask('/status/200')).headers['x-ratelimit-limit'], undefined)
})

test('a handler may let the request pass; what it throws is an error of the app', async (t) => {
  const lenient = await site(t, { limit: 1, handler: (_request, _response, next) => next() })
  assert.deepEqual(await statuses(lenient, '/', '/'), [200, 200])
  for (const handler of [() => assert.fail('handler'), () => Promise.reject()]) {
    const failing = await site(t, { limit: 1, handler })
    assert.deepEqual(await statuses(failing, '/', '/'), [200, 500])
  }
  for (const option of ['skip', 'keyGenerator'] as const) {
    for (const fails of [() => Promise.reject(new Error('later')), () => assert.fail('now')]) {
      const app = await site(t, { [option]: fails } as Options)
      assert.deepEqual(await statuses(app, '/'), [500])
      assert.equal(app.errors.length, 1)
    }
  }
})

test('the handler gets the options with their defaults', async (t) => {
  const handler: Options['handler'] = (_request, response, _next, { windowMs, limit, statusCode, message }) =>
    response.status(statusCode).json({ windowMs, limit, message })
  const app = await site(t, { max: 1, limit: undefined as never, message: { error: 'slow down' }, handler })
  await app.ask()
  assert.deepEqual(JSON.parse((await app.ask()).text), { windowMs: MINUTE, limit: 1, message: { error: 'slow down' } })
})

/** A limiter that is there, but decides nothing. */
const broken = (policy: Policy): Limiter => ({ ...here(policy), policy, take: fails, peek: fails }) as never

function fails(): never {
  throw new StoreError('OUTAGE', 'not there')
}

test('what the limiter cannot decide is answered with 503, or passes where that was asked for', async (t) => {
  const closed = await site(t, { create: broken })
  const { status, headers, text } = await closed.ask()
  assert.equal(status, 503)
  assert.equal(headers['retry-after'], '1')
  assert.equal(JSON.parse(text).type, 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity')
  const logged: unknown[] = []
  const open = await site(t, { create: broken, passOnStoreError: true, logger: { error: (error) => void logged.push(error) } })
  assert.deepEqual(await statuses(open, '/', '/', '/'), [200, 200, 200])
  assert.deepEqual(logged.map(String), Array(3).fill('StoreError: not there'))
})

test('a limiter that takes its time decides the same', async (t) => {
  const create = (policy: Policy): Limiter => {
    const limiter = here(policy)
    const later = { take: async (key: string, cost: number) => limiter.take(key, cost), peek: async (key: string) => limiter.peek(key) }
    return { policy: limiter.policy, ...later } as never
  }
  assert.deepEqual(await statuses(await site(t, { create }), '/', '/', '/'), [200, 200, 429])
})

test('a shadow limiter lets pass, and no response has Retry-After', async (t) => {
  const create = (policy: Policy): Limiter => createLimiter(policy, { clock, shadow: true })
  const app = await site(t, { limit: 1, create, standardHeaders: 'draft-8' })
  assert.deepEqual(await statuses(app, '/', '/'), [200, 200])
  const { status, headers } = await app.ask()
  assert.deepEqual([status, headers['x-ratelimit-remaining'], headers['retry-after']], [200, '0', undefined])
})

test('headers of keys with a policy of their own describe it', async (t) => {
  const limits: Readonly<Record<string, number>> = { vip: 3, guest: 1 }
  const create = (policy: Policy): Limiter =>
    createLimiter(policy, {
      clock,
      policyFor: (key) => (limits[key] === undefined ? undefined : ({ ...policy, limit: limits[key], burst: limits[key] } as Policy)),
    })
  const used: number[][] = []
  const handler = (request: Request, response: Response): void => {
    const { rateLimit } = request as never as { rateLimit: RateLimitInfo }
    used.push([rateLimit.limit, rateLimit.used])
    response.status(429).send('no')
  }
  const app = await site(t, { limit: 2, create, handler, keyGenerator: ({ path }) => path.slice(1) || 'ada' })
  assert.deepEqual(await statuses(app, '/', '/', '/', '/vip', '/vip', '/vip', '/vip'), [200, 200, 429, 404, 404, 404, 429])
  assert.deepEqual(await statuses(app, '/guest', '/guest'), [404, 429])
  assert.deepEqual(used, [
    [2, 3],
    [3, 4],
    [1, 2],
  ])
  assert.deepEqual([(await app.limit.getKey('vip'))?.totalHits, (await app.limit.getKey('guest'))?.totalHits], [4, 2])
})

const TEN_MINUTES = 600_000

test('a prefix of its own is in the name of what a store counts by', () => {
  assert.equal(countingPolicy(TEN_MINUTES).name, 'express-rate-limit-10m')
  assert.equal(countingPolicy(TEN_MINUTES, 'rl:').name, 'express-rate-limit-10m')
  assert.equal(countingPolicy(TEN_MINUTES, 'login:').name, 'express-rate-limit-10m-login:')
  for (const prefix of ['grün', 'x'.repeat(120)]) {
    assert.throws(() => countingPolicy(TEN_MINUTES, prefix), { code: 'NAME_INVALID', option: 'prefix' })
  }
})

test('stores of one window and two prefixes count apart on the channel of a cluster', async (t) => {
  const { worker, parent } = channelPair()
  const stores = ['a:', 'b:'].map((prefix) => {
    const served = serveLimiter(countingPolicy(TEN_MINUTES, prefix))
    served.serve(worker)
    const store = new SluicegateStore({
      prefix,
      create: (policy) => createLimiter(policy, { store: primary({ process: parent }), timeout: 30_000 }),
    })
    store.init({ windowMs: TEN_MINUTES, limit: 5 })
    t.after(() => {
      store.shutdown()
      served.close()
    })
    return store
  })
  for (const hits of [1, 2]) for (const store of stores) assert.equal((await store.increment('ada')).totalHits, hits)
})

test('a store that has its limiter to itself takes any prefix', async () => {
  const store = new SluicegateStore({ prefix: 'grün' })
  store.init({ windowMs: TEN_MINUTES, limit: 5 })
  assert.equal((await store.increment('ada')).totalHits, 1)
})

test('a request that passes without a decision has no info, or what this process knows', async (t) => {
  // Of a store that is away, whose answer is a share of 5 of the 50 there are.
  const spent = { spent: 1, limit: 50, remaining: 4, retryAfterMs: 0, resetAfterMs: 60_000 }
  const take = (): Decision => ({ allowed: true, policy: 'share', source: 'outage', ...spent })
  const create = (policy: Policy): Limiter => ({ ...here(policy), policy, take, peek: take }) as never
  const found = async (options: Options): Promise<unknown> => {
    const seen: unknown[] = []
    const skip = (request: Request): boolean => {
      request.res?.once('finish', () => seen.push((request as never as { rateLimit?: RateLimitInfo }).rateLimit))
      return false
    }
    const { headers } = await (await site(t, { limit: 50, create, skip, ...options })).ask()
    await turnsUntil(() => seen.length === 1)
    const [info] = seen as RateLimitInfo[]
    return info === undefined ? headers['x-ratelimit-limit'] : [info.used, info.remaining]
  }
  assert.equal(await found({ passOnStoreError: true }), undefined)
  assert.deepEqual(await found({}), [1, 4])
})

test('a limit of 0 denies every request, and the next window too', async (t) => {
  const app = await site(t, { limit: 0 })
  assert.deepEqual(await statuses(app, '/', '/'), [429, 429])
  clock.set(Math.ceil((clock.nowMs() + 1) / MINUTE) * MINUTE)
  const { status, headers } = await app.ask()
  assert.deepEqual([status, headers['x-ratelimit-limit'], headers['retry-after']], [429, '0', '60'])
  assert.equal(await usedBy(app), 1)
  await app.limit.resetKey('127.0.0.1')
  assert.deepEqual(await statuses(app, '/'), [429])
})

test('a store of this library counts for the middleware, and for nothing else', async (t) => {
  const store = new MemoryStore({ prefix: 'a:', create: here })
  const app = await site(t, { create: undefined, store } as never)
  assert.deepEqual(await statuses(app, '/', '/', '/'), [200, 200, 429])
  assert.equal((await store.get('127.0.0.1'))?.totalHits, 3)
  await store.resetKey('127.0.0.1')
  assert.deepEqual(await statuses(app, '/', '/', '/'), [200, 200, 429])
  assert.throws(() => rateLimit({ store }), { option: 'store' })
  assert.throws(() => rateLimit({ store: new MemoryStore(), create: here }), { option: 'create' })
  assert.throws(() => rateLimit({ store: new MemoryStore({ limiter: here(fixedWindow({ limit: 2, window: '1m' })) }) }), {
    option: 'store',
  })
  const own = new MemoryStore()
  const fresh = await site(t, { create: undefined, store: own } as never)
  assert.deepEqual(await statuses(fresh, '/', '/', '/'), [200, 200, 429])
  await own.resetAll()
  assert.deepEqual(await statuses(fresh, '/', '/', '/'), [200, 200, 429])
})

/** The message of the error for invalid options. */
function mend(options: unknown): string {
  try {
    rateLimit(options as Options)
  } catch (error) {
    return String(error)
  }
  return 'taken'
}

test('an option that does not exist is refused', () => {
  assert.match(mend({ limitt: 5 }), /^PolicyError: limitt: is not one of windowMs, limit, /)
  assert.doesNotMatch(mend({ limitt: 5 }), /onLimitReached/)
  assert.match(mend('5 a minute'), /^PolicyError: options: must be an object/)
})

test('the error of an unsupported option has the replacement', () => {
  assert.match(mend({ store: {} }), /^PolicyError: store: .*redis\(client\)/)
  assert.match(mend({ store: null }), /^PolicyError: store: .*redis\(client\)/)
  assert.match(mend({ limit: () => 5 }), /^PolicyError: limit: .*policy: \(request\) => .*SluicegateStore/)
  assert.match(mend({ max: () => 5 }), /^PolicyError: limit: .*policy: \(request\)/)
  assert.match(mend({ onLimitReached: () => undefined }), /^PolicyError: onLimitReached: .*handler/)
  assert.match(mend({ draft_polli_ratelimit_headers: true }), /^PolicyError: draft_polli_ratelimit_headers: .*draft-6/)
  assert.match(mend({ delayAfter: 1 }), /^PolicyError: delayAfter: .*slowDown: \{ after, delay, maxDelay \}/)
  assert.match(mend({ identifier: () => 'api' }), /^PolicyError: identifier: must be a string/)
})

test('a value out of range is refused by the name that it was given by', () => {
  const cases: readonly [unknown, string][] = [
    [{ windowMs: '1m' }, 'windowMs'],
    [{ windowMs: 0 }, 'windowMs'],
    [{ windowMs: 400 * 86_400_000 }, 'windowMs'],
    [{ limit: 1.5 }, 'limit'],
    [{ limit: Number.POSITIVE_INFINITY }, 'limit'],
    [{ limit: null }, 'limit'],
    [{ statusCode: 99 }, 'statusCode'],
    [{ standardHeaders: 'draft-9' }, 'standardHeaders'],
    [{ identifier: 'ü' }, 'identifier'],
    [{ retryAfter: -1 }, 'retryAfter'],
    [{ retryAfter: '1' }, 'retryAfter'],
    [{ skip: true }, 'skip'],
    [{ keyGenerator: 'ip' }, 'keyGenerator'],
    [{ handler: 'deny' }, 'handler'],
    [{ requestWasSuccessful: true }, 'requestWasSuccessful'],
    [{ create: 'redis' }, 'create'],
    [{ logger: {} }, 'logger'],
    [{ logger: null }, 'logger'],
    [{ logger: { error: 'to the console' } }, 'logger'],
    [{ logger: console.error }, 'logger'],
  ]
  for (const [options, option] of cases) assert.match(mend(options), new RegExp(`^PolicyError: ${option}: `), JSON.stringify(options))
})

test('what is undefined is not given', () => {
  const names = ['store', 'onLimitReached', 'limit', 'windowMs', 'validate', 'nothing']
  assert.equal(mend(Object.fromEntries(names.map((name) => [name, undefined]))), 'taken')
  assert.equal(mend({ validate: { trustProxy: false }, logger: console, skipFailedRequests: true }), 'taken')
})
