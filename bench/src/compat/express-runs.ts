import assert from 'node:assert/strict'
import { createLimiter, manualClock, type Policy } from 'sluicegate'
import { type Options, rateLimit, SluicegateStore } from 'sluicegate/express-rate-limit'
import { Random } from 'sluicegate-testkit'
import { requireRival } from '../rivals.js'
import { type Middleware, type Reply, type RivalSite, type SiteRequest, type SiteResponse, siteWith } from './rival-express.js'

/** Options that both take, and settings of the app around them. */
interface DrawnSite {
  readonly options: Readonly<Record<string, unknown>>
  readonly settings: Readonly<Record<string, unknown>>
}

/** A request, or a call of the middleware. */
type DrawnCall =
  | { readonly path: string; readonly headers: Readonly<Record<string, string>> }
  | { readonly verb: 'getKey' | 'resetKey'; readonly key: string }

const ADDRESSES = [
  '203.0.113.7',
  '2001:db8:0:42ff::1',
  '2001:db8:0:42aa::2',
  '::ffff:203.0.113.7',
  '64:ff9b::cb00:7107',
  '2002:cb00:7107::1',
]
const STATUSES = [200, 200, 200, 201, 302, 400, 401, 404, 500, 503]
const USERS = ['ada', 'bob', 'eve', '']

/** What is denied and passes all the same may show how often it was counted, which our middleware does not count. */
function letPass(_: unknown, __: unknown, next: () => void): void {
  next()
}

/** What each option may be; most are left out of most sites. */
const CHOICES: Readonly<Record<string, readonly unknown[]>> = {
  message: ['slow down', { error: 'slow down' }, async ({ path }: SiteRequest) => `not ${path}`, () => ''],
  statusCode: [503, 420, 200],
  legacyHeaders: [true, false],
  standardHeaders: [true, false, 'draft-6', 'draft-7', 'draft-8'],
  identifier: ['per client', 'api'],
  retryAfter: [7, 0, async ({ query }: SiteRequest) => Number(query.wait ?? 3)],
  requestPropertyName: ['count'],
  skipFailedRequests: [true],
  skipSuccessfulRequests: [true],
  requestWasSuccessful: [
    (_: SiteRequest, { statusCode }: SiteResponse) => statusCode === 404,
    async (_: SiteRequest, { statusCode }: SiteResponse) => statusCode < 500,
  ],
  skip: [({ query }: SiteRequest) => query.free !== undefined, async ({ query }: SiteRequest) => query.user === 'eve'],
  handler: [
    (_: SiteRequest, response: SiteResponse, __: unknown, { limit, windowMs }: { limit: number; windowMs: number }) =>
      response.status(418).send({ limit, windowMs }),
    letPass,
  ],
  passOnStoreError: [true],
  validate: [false, true, { trustProxy: false }],
}
const SHARE = 0.2
/** None ends while it is asked. */
const WINDOWS_MS = [3_600_000, 7_200_000, 43_200_000, 86_400_000]

/** Options and settings, drawn. @param forStore whether express-rate-limit itself is asked on both sides. */
function drawnSite(random: Random, forStore: boolean): DrawnSite {
  const windowMs = random.pick(WINDOWS_MS)
  const options: Record<string, unknown> = { windowMs, [random.chance(0.2) ? 'max' : 'limit']: random.integer(0, 6) }
  for (const [name, values] of Object.entries(CHOICES)) if (random.chance(SHARE)) options[name] = random.pick(values)
  if (!forStore && options.handler === letPass) delete options.handler
  const settings: Record<string, unknown> = random.chance(0.8) ? { 'trust proxy': random.pick([1, 1, true, 'loopback']) } : {}
  if (random.chance(0.4)) options.keyGenerator = ({ query }: SiteRequest) => query.user || 'none'
  else if (random.chance(0.5)) options.ipv6Subnet = random.pick([32, 48, 56, 60, 64, false, async () => 48])
  if (forStore && random.chance(0.3)) options.limit = async ({ query }: SiteRequest) => Number(query.limit ?? 3)
  return { options, settings }
}

/** What is asked next, drawn. */
function drawnCall(random: Random): DrawnCall {
  if (random.chance(0.04))
    return { verb: random.pick(['getKey', 'resetKey'] as const), key: random.pick(['ada', 'bob', ...ADDRESSES, '127.0.0.1']) }
  const query = new URLSearchParams({ user: random.pick(USERS) })
  if (random.chance(0.5)) query.set('status', String(random.pick(STATUSES)))
  if (random.chance(0.1)) query.set('free', '')
  if (random.chance(0.2)) query.set('show', random.pick(['rateLimit', 'count']))
  if (random.chance(0.2)) query.set('wait', String(random.integer(0, 9)))
  if (random.chance(0.3)) query.set('limit', String(random.integer(0, 6)))
  const headers = random.chance(0.7) ? { 'x-forwarded-for': random.pick(ADDRESSES) } : {}
  return { path: `/?${query}`, headers: headers as Readonly<Record<string, string>> }
}

/** What says when a request came, and not what was decided about it. */
const OF_THE_MOMENT = new Set(['date', 'connection', 'keep-alive'])
const RESETS = /(?<=^|\breset=|\bt=)\d+/
const RESET_FIELDS = ['x-ratelimit-reset', 'ratelimit-reset', 'ratelimit', 'retry-after']
/** Two sites are not asked at the same moment, and seconds are rounded. */
const REPLIES_SECONDS_APART = 2

/** How a site is asked, beside the path. */
interface AskedHow {
  readonly headers?: Readonly<Record<string, string>>
  readonly mostSecondsApart?: number
}

/** Asks both sites the same in turn: statuses, bodies and headers have to be the same. Times may be apart by what passes meanwhile. */
export async function assertSameReplies(
  theirs: RivalSite,
  ours: RivalSite,
  paths: readonly string[],
  { headers = {}, mostSecondsApart = REPLIES_SECONDS_APART }: AskedHow = {},
): Promise<readonly number[]> {
  const statuses = []
  for (const [i, path] of paths.entries()) {
    const [expected, actual] = [await theirs.ask(path, headers), await ours.ask(path, headers)]
    assert.deepEqual(timeless(actual), timeless(expected), `reply ${i + 1}, to ${path}`)
    for (const field of RESET_FIELDS) {
      const apart = Math.abs(secondsIn(actual, field) - secondsIn(expected, field))
      assert.ok(apart <= mostSecondsApart, `${field}: ${actual.headers[field]} where theirs is ${expected.headers[field]}`)
    }
    statuses.push(actual.status)
  }
  return statuses
}

function secondsIn({ headers }: Reply, field: string): number {
  return Number(RESETS.exec(headers[field] ?? '')?.[0] ?? 0)
}

function timeless({ status, headers, body }: Reply): Reply {
  const fields = Object.entries(headers).filter(([name]) => !OF_THE_MOMENT.has(name))
  const same = fields.map(([name, value]) => [name, RESET_FIELDS.includes(name) ? plain(value).replace(RESETS, 's') : plain(value)])
  return { status, headers: Object.fromEntries(same), body }
}

/** A structured field without optional white space, and without the hash of the key, which theirs tells to all. */
function plain(value: string): string {
  return value.replaceAll(/; (?=\w+=)/g, ';').replaceAll(/;pk=:[^:]*:/g, '')
}

type Limit = Middleware & { getKey(key: string): Promise<{ totalHits: number } | undefined>; resetKey(key: string): Promise<void> }

const theirs = requireRival('express-rate-limit') as { readonly rateLimit: (options: object) => Limit }

/** How often a site is asked before there is another one. */
const CALLS = 100
/** For the times of resets: the clock of ours stands still. */
const MOST_SECONDS_APART = 600
const silent = { error: () => undefined, warn: () => undefined }
/** The beginning of a window of any length here: theirs begins with the first request. */
const clock = manualClock(0)
const create = (policy: Policy) => createLimiter(policy, { clock })

interface Side {
  readonly limit: Limit
  readonly site: RivalSite
}

/**
 * Random requests of both libraries over HTTP under random options, until each was asked so often: by turns our middleware beside theirs, and
 * theirs over our store beside theirs. Seeds count up from `seed`; those that were saved come first.
 *
 * @returns the seed after the last one.
 */
export async function compareRequests(requests: number, seed: number, saved: readonly number[] = []): Promise<number> {
  for (const each of saved) await compareSites(each)
  let next = seed
  for (; (next - seed + saved.length) * CALLS < requests; next++) await compareSites(next)
  return next
}

async function compareSites(seed: number): Promise<void> {
  const random = new Random(seed)
  const isStore = seed % 2 === 0
  const { options, settings } = drawnSite(random, isStore)
  const ours = isStore
    ? theirs.rateLimit({ ...options, logger: silent, store: new SluicegateStore({ create }) })
    : (rateLimit({ ...options, logger: silent, create } as Options) as unknown as Limit)
  const mostCounted = isStore ? Number.POSITIVE_INFINITY : Number(options.limit ?? options.max)
  const sides: Side[] = []
  try {
    for (const limit of [theirs.rateLimit({ ...options, logger: silent }), ours])
      sides.push({ limit, site: await siteWith(settings, limit) })
    for (let i = 0; i < CALLS; i++) await compareCall(sides, drawnCall(random), mostCounted, `call ${i + 1}`)
  } catch (error) {
    throw new Error(`seed ${seed}: ${String(error)}`, { cause: error })
  } finally {
    for (const { site } of sides) await site.close()
  }
}

async function compareCall([a, b]: readonly Side[], call: DrawnCall, mostCounted: number, name: string): Promise<void> {
  const [expected, actual] = [a as Side, b as Side]
  if ('path' in call) {
    await assertSameReplies(expected.site, actual.site, [call.path], { headers: call.headers, mostSecondsApart: MOST_SECONDS_APART })
    return
  }
  if (call.verb === 'resetKey') {
    for (const { limit } of [expected, actual]) await limit.resetKey(call.key)
    return
  }
  const [hits = 0, own = 0] = [await expected.limit.getKey(call.key), await actual.limit.getKey(call.key)].map((known) => known?.totalHits)
  // What is denied is not counted by our middleware: above the limit it says only that.
  if (own <= mostCounted) assert.equal(own, hits, `${name}: getKey of ${call.key}`)
}
