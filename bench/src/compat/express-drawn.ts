import type { Random } from 'sluicegate-testkit'
import type { SiteRequest, SiteResponse } from './rival-express.js'

/** Options that both take, and settings of the app around them. */
export interface DrawnSite {
  readonly options: Readonly<Record<string, unknown>>
  readonly settings: Readonly<Record<string, unknown>>
}

/** A request, or a call of the middleware. */
export type DrawnCall =
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
export function drawnSite(random: Random, forStore: boolean): DrawnSite {
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
export function drawnCall(random: Random): DrawnCall {
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
