import type { SiteRequest, SiteResponse } from './rival-express.js'

/** Options that both sides take, and what is asked under them. */
export interface OptionCase {
  readonly name: string
  readonly options: Readonly<Record<string, unknown>>
  readonly paths: readonly string[]
  /** Only the store takes them over; the middleware refuses. */
  readonly forStore?: true
}

const FOUR = ['/', '/', '/', '/']

/** Each option of express-rate-limit that changes what is answered. */
export const OPTION_CASES: readonly OptionCase[] = [
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
