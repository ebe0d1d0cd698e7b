import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { attachLimiter, createLimiter, fixedWindow, type Limiter, manualClock, type Policy, StoreError, tokenBucket } from 'sluicegate'
import { rateLimit, SluicegateStore } from 'sluicegate/express-rate-limit'
import { everyNth, shortOrLong } from 'sluicegate-testkit'
import { requireRival } from '../rivals.js'
import { assertSameReplies, compareRequests } from './express-runs.js'
import { type Middleware, type RivalSite, type SiteRequest, type SiteResponse, siteBehind } from './rival-express.js'

/** Options that both sides take, and what is asked under them. */
interface OptionCase {
  readonly name: string
  readonly options: Readonly<Record<string, unknown>>
  readonly paths: readonly string[]
  /** Only the store takes them over; the middleware refuses. */
  readonly forStore?: true
}

const FOUR = ['/', '/', '/', '/']

/** Each option of express-rate-limit that changes what is answered. */
const OPTION_CASES: readonly OptionCase[] = [
  { name: 'nothing', options: {}, paths: [...FOUR, ...FOUR] },
  { name: 'limit', options: { limit: 2 }, paths: FOUR },
  { name: 'max, the older name', options: { max: 2 }, paths: FOUR },
  { name: 'limit beside max', options: { max: 9, limit: 1 }, paths: FOUR },
  {
    name: 'limit of the request',
    options: { limit: ({ query }: SiteRequest) => Number(query.limit) },
    forStore: true,
    paths: ['/?limit=1', '/?limit=1', '/?limit=3', '/?limit=3', '/?limit=9'],
  },
  { name: 'limit 0', options: { limit: 0, standardHeaders: 'draft-8' }, paths: FOUR },
  { name: 'what handlers find on the request', options: {}, paths: ['/?show=rateLimit', '/?show=rateLimit'] },
  { name: 'requestPropertyName', options: { requestPropertyName: 'count' }, paths: ['/?show=count', '/?show=count', '/?show=rateLimit'] },
  { name: 'no headers', options: { limit: 2, legacyHeaders: false }, paths: FOUR },
  { name: 'headers, the older name', options: { limit: 2, headers: false }, paths: FOUR },
  { name: 'standardHeaders', options: { limit: 2, standardHeaders: true }, paths: FOUR },
  { name: 'draft 6', options: { limit: 2, standardHeaders: 'draft-6', legacyHeaders: false }, paths: FOUR },
  { name: 'draft 7', options: { limit: 2, standardHeaders: 'draft-7' }, paths: FOUR },
  { name: 'draft 8', options: { limit: 2, standardHeaders: 'draft-8' }, paths: FOUR },
  { name: 'identifier', options: { limit: 2, standardHeaders: 'draft-8', identifier: 'per client' }, paths: FOUR },
  { name: 'retryAfter', options: { limit: 1, retryAfter: 7 }, paths: FOUR },
  {
    name: 'retryAfter of the request',
    options: { limit: 1, retryAfter: async ({ query }: SiteRequest) => Number(query.wait) },
    paths: ['/', '/?wait=3', '/?wait=0'],
  },
  { name: 'retryAfter without headers', options: { limit: 1, retryAfter: 7, legacyHeaders: false }, paths: FOUR },
  { name: 'message, a string', options: { limit: 1, message: 'slow down' }, paths: FOUR },
  { name: 'message, an object', options: { limit: 1, message: { error: 'slow down' } }, paths: FOUR },
  { name: 'message, a function', options: { limit: 1, message: async ({ path }: SiteRequest) => `not ${path}` }, paths: FOUR },
  { name: 'statusCode', options: { limit: 1, statusCode: 503 }, paths: FOUR },
  {
    name: 'handler',
    options: {
      limit: 1,
      handler: (_: SiteRequest, response: SiteResponse, __: unknown, used: { limit: number }) =>
        response.status(420).send({ limit: used.limit }),
    },
    paths: FOUR,
  },
  { name: 'a handler that lets pass', options: { limit: 1, handler: (_: unknown, __: unknown, next: () => void) => next() }, paths: FOUR },
  {
    name: 'skip',
    options: { limit: 1, skip: ({ query }: SiteRequest) => query.free !== undefined },
    paths: ['/?free', '/', '/?free', '/', '/?free'],
  },
  {
    name: 'skipFailedRequests',
    options: { limit: 2, skipFailedRequests: true },
    paths: ['/?status=500', '/?status=404', '/?status=400', '/', '/', '/', '/'],
  },
  {
    name: 'skipSuccessfulRequests',
    options: { limit: 2, skipSuccessfulRequests: true },
    paths: [...FOUR, '/?status=401', '/?status=401', '/?status=401'],
  },
  {
    name: 'both',
    options: { limit: 1, skipFailedRequests: true, skipSuccessfulRequests: true },
    paths: [...FOUR, '/?status=401', '/?status=401'],
  },
  {
    name: 'requestWasSuccessful',
    options: {
      limit: 2,
      skipSuccessfulRequests: true,
      requestWasSuccessful: (_: SiteRequest, { statusCode }: SiteResponse) => statusCode === 404,
    },
    paths: ['/?status=404', '/?status=404', '/?status=404', '/', '/', '/'],
  },
  {
    name: 'keyGenerator',
    options: { limit: 1, keyGenerator: ({ query }: SiteRequest) => query.user },
    paths: ['/?user=ada', '/?user=bob', '/?user=ada', '/?user=bob'],
  },
  { name: 'windowMs of half an hour', options: { windowMs: 1_800_000, standardHeaders: 'draft-8' }, paths: FOUR },
  { name: 'windowMs of two hours', options: { windowMs: 7_200_000, standardHeaders: 'draft-8' }, paths: FOUR },
  { name: 'windowMs of a day', options: { windowMs: 86_400_000, standardHeaders: 'draft-8' }, paths: FOUR },
  { name: 'windowMs of a second and a half', options: { windowMs: 1_500, standardHeaders: 'draft-8' }, paths: ['/'] },
]

const theirs = requireRival('express-rate-limit') as {
  readonly rateLimit: (
    options: object,
  ) => Middleware & { getKey(key: string): Promise<{ totalHits: number } | undefined>; resetKey(key: string): Promise<void> }
}

/** The beginning of a window of any length here: theirs begins with the first request. */
const clock = manualClock(0)
const here = (policy: Policy) => createLimiter(policy, { clock })

/** What express-rate-limit has to say of how it is used. */
class Complaints {
  readonly codes: string[] = []
  readonly error = (error: unknown): void => void this.codes.push((error as { code?: string }).code ?? String(error))
  readonly warn = this.error
}

async function site(t: TestContext, ...limits: readonly Middleware[]): Promise<RivalSite> {
  const open = await siteBehind(...limits)
  t.after(() => open.close())
  return open
}

async function statuses(asked: RivalSite, ...paths: readonly string[]): Promise<number[]> {
  const found = []
  for (const path of paths) found.push((await asked.ask(path)).status)
  return found
}

for (const [i, { name, options, paths, forStore }] of OPTION_CASES.entries()) {
  everyNth(i, 4)(`express-rate-limit answers the same over our store: ${name}`, async (t) => {
    const logger = new Complaints()
    const store = new SluicegateStore({ create: here })
    const [expected, actual] = [
      await site(t, theirs.rateLimit({ ...options, logger: new Complaints() })),
      await site(t, theirs.rateLimit({ ...options, store, logger })),
    ]
    await assertSameReplies(expected, actual, paths)
    assert.deepEqual(logger.codes, options.limit === 0 ? ['WRN_ERL_MAX_ZERO'] : [])
  })

  everyNth(i, 4)(`our middleware ${forStore ? 'refuses' : 'answers as express-rate-limit does'}: ${name}`, async (t) => {
    const make = (): Middleware => rateLimit({ ...options, create: here }) as Middleware
    if (forStore) {
      assert.throws(make, { name: 'PolicyError' })
      return
    }
    await assertSameReplies(await site(t, theirs.rateLimit({ ...options, logger: new Complaints() })), await site(t, make()), paths)
  })
}

test('a limiter that decides denies through express-rate-limit what it denies, at any limit of a request', async (t) => {
  const bucket = createLimiter(tokenBucket({ limit: 60, window: '1m', burst: 2 }), { clock })
  const logger = new Complaints()
  const store = new SluicegateStore({ limiter: bucket })
  const limited = await site(t, theirs.rateLimit({ limit: () => 1_000_000, store, logger, standardHeaders: 'draft-7' }))
  assert.deepEqual(await statuses(limited, '/', '/', '/', '/'), [200, 200, 429, 429])
  assert.equal((await limited.ask('/')).headers['retry-after'], '1', 'when the next token comes, not when all have')
  clock.advance(1_000)
  assert.deepEqual(await statuses(limited, '/', '/'), [200, 429])
  assert.deepEqual(logger.codes, [])
})

test('a key that may more than the limit passes through express-rate-limit as often as the limiter says', async (t) => {
  const large = fixedWindow({ limit: 8, window: '1m' })
  const policyFor = (key: string): Policy | undefined => (key === 'vip' ? large : undefined)
  const limiter = createLimiter(fixedWindow({ limit: 5, window: '1m' }), { clock, policyFor })
  const keyGenerator = ({ query }: SiteRequest): string | undefined => query.user
  const limited = await site(
    t,
    theirs.rateLimit({ limit: 5, keyGenerator, store: new SluicegateStore({ limiter }), logger: new Complaints() }),
  )
  const asked = async (user: string): Promise<number[]> => statuses(limited, ...Array<string>(9).fill(`/?user=${user}`))
  assert.deepEqual(await asked('vip'), [...Array(8).fill(200), 429])
  assert.deepEqual(await asked('ada'), [...Array(5).fill(200), ...Array(4).fill(429)])
})

test('a limit that is not that of the limiter is logged, and fails each request', async (t) => {
  const logger = new Complaints()
  const store = new SluicegateStore({ limiter: here(fixedWindow({ limit: 100, window: '1m' })) })
  const limited = await site(t, theirs.rateLimit({ store, logger }))
  assert.deepEqual(logger.codes, ['OPTION_INVALID'])
  assert.deepEqual(await statuses(limited, '/', '/'), [500, 500])
  assert.match(limited.errors[0] ?? '', /^PolicyError: limit: must be 100/)
})

test('denials give nothing back, however many there are at once', async (t) => {
  const store = new SluicegateStore({ create: here })
  const limited = await site(t, theirs.rateLimit({ limit: 5, skipFailedRequests: true, store, logger: new Complaints() }))
  const crowd = await Promise.all(Array.from({ length: 60 }, () => limited.ask('/')))
  assert.equal(crowd.filter(({ status }) => status === 200).length, 5)
  assert.deepEqual(await statuses(limited, '/', '/', '/'), [429, 429, 429])
})

test('getKey and resetKey of express-rate-limit reach the store', async (t) => {
  const limit = theirs.rateLimit({ limit: 2, store: new SluicegateStore({ create: here }) })
  const limited = await site(t, limit)
  assert.equal(await limit.getKey('127.0.0.1'), undefined)
  assert.deepEqual(await statuses(limited, '/', '/', '/'), [200, 200, 429])
  assert.equal((await limit.getKey('127.0.0.1'))?.totalHits, 3)
  await limit.resetKey('127.0.0.1')
  assert.deepEqual(await statuses(limited, '/', '/', '/'), [200, 200, 429])
})

test('one count that is asked twice is complained of, two counts are not', async (t) => {
  const two = new Complaints()
  const limits = [1, 2].map(() => theirs.rateLimit({ store: new SluicegateStore({ create: here }), logger: two }))
  await statuses(await site(t, ...limits), '/')
  assert.deepEqual(two.codes, [])
  const limiter = here(fixedWindow({ limit: 5, window: '1m' }))
  const one = new Complaints()
  const shared = [1, 2].map(() => theirs.rateLimit({ store: new SluicegateStore({ limiter }), logger: one }))
  await statuses(await site(t, ...shared), '/')
  assert.deepEqual(one.codes, ['ERR_ERL_DOUBLE_COUNT'])
  const attached = new Complaints()
  let made: Limiter | undefined
  const create = (policy: Policy): Limiter => {
    made ??= here(policy)
    return attachLimiter(made.handle())
  }
  const both = [1, 2].map(() => theirs.rateLimit({ store: new SluicegateStore({ create }), logger: attached }))
  await statuses(await site(t, ...both), '/')
  assert.deepEqual(attached.codes, ['ERR_ERL_DOUBLE_COUNT'])
  const apart = new Complaints()
  const prefixed = ['a:', 'b:'].map((prefix) => theirs.rateLimit({ store: new SluicegateStore({ limiter, prefix }), logger: apart }))
  await statuses(await site(t, ...prefixed), '/')
  assert.deepEqual(apart.codes, [])
})

test('a store for two middlewares is complained of, and counts for none', async (t) => {
  const store = new SluicegateStore({ create: here })
  const logger = new Complaints()
  const limits = [1, 2].map(() => theirs.rateLimit({ store, logger }))
  assert.deepEqual(logger.codes, ['ERR_ERL_STORE_REUSE', 'OPTION_INVALID'])
  assert.deepEqual(await statuses(await site(t, ...limits), '/'), [500])
})

test('what the store cannot decide is an error, or passes by passOnStoreError', async (t) => {
  const fails = (): never => {
    throw new StoreError('OUTAGE', 'not there')
  }
  const create = (policy: Policy) => ({
    ...here(policy),
    policy,
    take: fails,
    peek: fails,
    penalize: fails,
    refund: fails,
    block: fails,
    reset: fails,
    close: () => undefined,
  })
  const logger = new Complaints()
  const closed = await site(t, theirs.rateLimit({ store: new SluicegateStore({ create }), logger }))
  assert.deepEqual(await statuses(closed, '/'), [500])
  const open = await site(t, theirs.rateLimit({ store: new SluicegateStore({ create }), logger, passOnStoreError: true }))
  assert.deepEqual(await statuses(open, '/', '/'), [200, 200])
  assert.deepEqual(logger.codes, ['OUTAGE', 'OUTAGE'])
})

// random-requests.long.test.ts goes on with other seeds.

const REQUESTS = shortOrLong(100, 500)

test(`our middleware and store answer ${REQUESTS} random requests as express-rate-limit does`, async () => {
  await compareRequests(REQUESTS, 1)
})
