import { UNITS } from 'sluicegate-config/envoy/rule.js'
import { VERSION } from '../../version.js'
import type { Route } from './handler.js'
import { JSON_TYPE, reply } from './reply.js'

type Schema = Readonly<Record<string, unknown>>

const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
const TEXT: Schema = { type: 'string' }
const INTEGER: Schema = { type: 'integer', minimum: 0 }
const BOOLEAN: Schema = { type: 'boolean' }

/** An object with these members and no other; those in `optional` may be left out. */
function object(properties: Record<string, Schema>, optional: readonly string[] = []): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name))
  return { type: 'object', properties, required, additionalProperties: false }
}

const KEY: Schema = {
  description: 'Who is limited. A list has one key for each policy of an all-of, an object has them by name.',
  oneOf: [
    { type: 'string', minLength: 1, maxLength: 1_024 },
    { type: 'array', items: { type: 'string', minLength: 1, maxLength: 1_024 }, minItems: 1, maxItems: 8 },
    { type: 'object', additionalProperties: { type: 'string', minLength: 1, maxLength: 1_024 } },
  ],
}
const TOKENS: Schema = { type: 'integer', minimum: 1, default: 1, description: 'Tokens.' }
const USAGE: Schema = object({ model: TEXT, input: INTEGER, cached: INTEGER, output: INTEGER }, ['input', 'cached', 'output'])
const COST: Schema = {
  oneOf: [{ type: 'integer', minimum: 1 }, ref('Usage')],
  default: 1,
  description: 'Tokens, or what was used of a model.',
}
const TRUE_COST: Schema = { oneOf: [INTEGER, ref('Usage')] }
const PRIORITY: Schema = { type: 'string', maxLength: 64, description: 'The class of the request, under a policy with priorities.' }
const POLICY: Schema = { type: 'string', description: 'Name of a policy of the configuration.' }

const DECISION_MEMBERS: Record<string, Schema> = {
  allowed: BOOLEAN,
  policy: { type: 'string', description: 'Of an all-of the one that decides.' },
  limit: INTEGER,
  remaining: { ...INTEGER, description: 'Whole tokens left.' },
  retryAfterMs: { type: ['number', 'null'], minimum: 0, description: 'Until the same request passes; 0 when allowed, null when never.' },
  resetAfterMs: { type: ['number', 'null'], minimum: 0, description: 'Until the key is full.' },
  source: { enum: ['memory', 'lease', 'store', 'outage'] },
  impossible: { const: true, description: 'The cost can never pass.' },
  soft: { type: 'array', items: TEXT, description: 'The policies of which the key has reached a soft limit.' },
  parts: { type: 'array', items: ref('Decision') },
}
const AFFORDABLE: Schema = { type: ['integer', 'null'], description: 'Output tokens that the work may have; null where they are free.' }
const MAYBE = ['impossible', 'soft', 'parts']

const LIMIT_CODE: Schema = { enum: ['OK', 'OVER_LIMIT'] }
const UNIT_NAMES = Object.keys(UNITS).map((name) => name.toUpperCase())

const SCHEMAS: Record<string, Schema> = {
  Usage: USAGE,
  Decision: object(DECISION_MEMBERS, MAYBE),
  Taken: object({ ...DECISION_MEMBERS, permit: TEXT, ttlMs: INTEGER }, [...MAYBE, 'permit', 'ttlMs']),
  Reserved: object({ ...DECISION_MEMBERS, reservation: TEXT, ttlMs: INTEGER }, [...MAYBE, 'reservation', 'ttlMs']),
  Opened: object(
    { ...DECISION_MEMBERS, hold: TEXT, held: INTEGER, over: INTEGER, affordable: INTEGER, affordableOutput: AFFORDABLE, ttlMs: INTEGER },
    [...MAYBE, 'hold', 'held', 'over', 'affordable', 'affordableOutput', 'ttlMs'],
  ),
  Added: object(
    {
      allowed: BOOLEAN,
      policy: { type: 'string', description: 'Which denies it; absent beyond the most that the work said.' },
      retryAfterMs: { type: ['number', 'null'], minimum: 0 },
      impossible: { const: true },
      used: { ...INTEGER, description: 'Tokens that the work has spent.' },
      held: { ...INTEGER, description: 'Tokens that are still held for it.' },
      over: { ...INTEGER, description: 'Of what it spent, the debt.' },
      affordable: { ...INTEGER, description: 'Tokens that it may spend at once, without debt.' },
    },
    ['policy', 'retryAfterMs', 'impossible'],
  ),
  Closed: object({ ...DECISION_MEMBERS, used: INTEGER, over: INTEGER }, MAYBE),
  Batch: object({ allowed: BOOLEAN, decisions: { type: 'array', items: ref('Decision') } }),
  RateLimitRequest: object(
    {
      domain: TEXT,
      descriptors: {
        type: 'array',
        minItems: 1,
        maxItems: 128,
        items: object(
          {
            entries: { type: 'array', maxItems: 64, items: object({ key: TEXT, value: TEXT }, ['value']) },
            limit: object({ requestsPerUnit: INTEGER, unit: { enum: UNIT_NAMES } }),
            hitsAddend: { ...INTEGER, description: '0 looks and takes nothing.' },
            isNegativeHits: { ...BOOLEAN, description: 'Gives the hits back.' },
          },
          ['limit', 'hitsAddend', 'isNegativeHits'],
        ),
      },
      hitsAddend: { ...INTEGER, description: 'Of each descriptor that has none; 0 is 1.' },
    },
    ['hitsAddend'],
  ),
  RateLimitResponse: object(
    {
      overallCode: LIMIT_CODE,
      statuses: {
        type: 'array',
        items: object(
          {
            code: LIMIT_CODE,
            currentLimit: object({ requestsPerUnit: INTEGER, unit: { enum: UNIT_NAMES }, name: TEXT }, ['requestsPerUnit', 'unit', 'name']),
            limitRemaining: INTEGER,
            durationUntilReset: { type: 'string', pattern: '^[0-9]+s$' },
          },
          ['currentLimit', 'limitRemaining', 'durationUntilReset'],
        ),
      },
      responseHeadersToAdd: { type: 'array', items: object({ key: TEXT, value: TEXT }) },
      dynamicMetadata: { type: 'object' },
    },
    ['responseHeadersToAdd', 'dynamicMetadata'],
  ),
  Problem: object({ type: TEXT, title: TEXT, status: INTEGER, detail: TEXT, code: TEXT }),
}

const PROBLEMS = [400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 431, 500, 503]

function content(schema: Schema): Schema {
  return { content: { [JSON_TYPE]: { schema } } }
}

/** Answers by status. Statuses in `schemas` may be problems too, and others are. */
function responses(schemas: Readonly<Record<number, Schema>>): Schema {
  const problems = PROBLEMS.filter((status) => !(status in schemas)).map((status) => [status, { $ref: '#/components/responses/Problem' }])
  const answers = Object.entries(schemas).map(([status, schema]) => [
    status,
    { description: MEANINGS[Number(status)] ?? '', ...content(schema) },
  ])
  return Object.fromEntries([...answers, ...problems])
}

const MEANINGS: Readonly<Record<number, string>> = {
  200: 'Done.',
  422: 'Impossible: the cost is above the burst and can never pass.',
  429: 'Denied: nothing was taken. Retry-After says when to come back.',
}

/** Of what decides: allowed, denied, impossible. */
function decided(schema: Schema): Readonly<Record<number, Schema>> {
  return { 200: schema, 429: schema, 422: schema }
}

function post(summary: string, body: Schema, schemas: Readonly<Record<number, Schema>>, more: object = {}): Schema {
  return { summary, requestBody: { required: true, ...content(body) }, responses: responses(schemas), ...more }
}

function get(summary: string, schemas: Readonly<Record<number, Schema>>): Schema {
  const parameter = (name: string, schema: Schema, required: boolean): Schema => ({ name, in: 'query', required, schema })
  const parameters = [
    parameter('policy', POLICY, true),
    parameter('key', TEXT, true),
    parameter('cost', TOKENS, false),
    parameter('priority', PRIORITY, false),
  ]
  return { summary, parameters, responses: responses(schemas) }
}

const ASK = object({ policy: POLICY, key: KEY, cost: COST, priority: PRIORITY }, ['cost', 'priority'])
const TTL: Schema = { type: 'integer', minimum: 1, description: 'Milliseconds.' }
const HOLD_COST: Schema = { oneOf: [{ type: 'integer', minimum: 1 }, ref('Usage'), { const: 'learned' }] }
const CALL: Schema = { type: 'integer', minimum: 1, description: 'The number of the call: a repeated one receives the first answer.' }
const HOLD_ANSWERS = decided(ref('Added'))
const ADMIN = { security: [{ token: [] }], tags: ['admin'] }
const text = (summary: string, statuses: readonly number[]): Schema => ({
  summary,
  responses: Object.fromEntries(statuses.map((status) => [status, { description: '', content: { 'text/plain': { schema: TEXT } } }])),
})

const PATHS: Readonly<Record<string, Schema>> = {
  '/v1/take': {
    get: get('Takes tokens.', decided(ref('Taken'))),
    post: post(
      'Takes tokens.',
      object({ policy: POLICY, key: KEY, cost: COST, ttlMs: TTL, priority: PRIORITY }, ['cost', 'ttlMs', 'priority']),
      decided(ref('Taken')),
    ),
  },
  '/v1/peek': {
    get: get('What a take would answer.', { 200: ref('Decision') }),
    post: post('What a take would answer.', ASK, { 200: ref('Decision') }),
  },
  '/v1/auth': {
    get: {
      summary:
        'A take for gateways such as nginx: 204 admits, 403 denies, or 429 with denied=429; 401 without a key, or as missing-key says. key-header=x-real-ip takes the key from there; addresses count by network, of IPv6 as ipv6-subnet says.',
      responses: {
        204: { description: 'Allowed.' },
        401: { $ref: '#/components/responses/Problem' },
        403: { description: 'Denied.' },
        429: { description: 'Denied.' },
        default: { $ref: '#/components/responses/Problem' },
      },
    },
  },
  '/v1/batch': {
    post: post(
      'Several takes in one request.',
      object(
        {
          takes: {
            type: 'array',
            minItems: 1,
            maxItems: 100,
            items: object(
              { policy: POLICY, key: KEY, cost: COST, peek: { ...BOOLEAN, description: 'Look, and take nothing.' }, priority: PRIORITY },
              ['priority', 'cost', 'peek'],
            ),
          },
          all: { ...BOOLEAN, default: false, description: 'All takes pass together, or none.' },
        },
        ['all'],
      ),
      decided(ref('Batch')),
    ),
  },
  '/v1/reserve': {
    post: post(
      'Takes tokens whose exact number is known later.',
      object({ policy: POLICY, key: KEY, cost: COST, ttlMs: { ...TTL, default: 60_000, maximum: 86_400_000 }, priority: PRIORITY }, [
        'cost',
        'ttlMs',
        'priority',
      ]),
      decided(ref('Reserved')),
    ),
  },
  '/v1/settle': {
    post: post('Commits what a reservation cost.', object({ reservation: TEXT, cost: TRUE_COST }), { 200: ref('Decision') }),
  },
  '/v1/cancel': { post: post('Gives the tokens of a reservation back.', object({ reservation: TEXT }), { 200: ref('Decision') }) },
  '/v1/open': {
    post: post(
      'Begins work whose cost is known only afterwards.',
      object(
        {
          policy: POLICY,
          key: KEY,
          expect: { ...HOLD_COST, description: 'Tokens that are held for it; `learned`: what most work of late cost.', default: 'learned' },
          most: { oneOf: [{ type: 'integer', minimum: 1 }, ref('Usage')], description: 'The most that it may cost.' },
          ttlMs: { ...TTL, minimum: 10, default: 15_000, maximum: 3_600_000 },
          over: { enum: ['cut', 'wait', 'finish'], default: 'cut', description: 'What a piece does for which there is no room.' },
          id: {
            type: 'string',
            minLength: 16,
            maxLength: 200,
            description: 'Yours, such as a UUID: the same open again receives the same hold.',
          },
          priority: PRIORITY,
        },
        ['expect', 'most', 'ttlMs', 'over', 'id', 'priority'],
      ),
      decided(ref('Opened')),
    ),
  },
  '/v1/add': { post: post('Spends a piece of open work.', object({ hold: TEXT, cost: TRUE_COST, call: CALL }, ['call']), HOLD_ANSWERS) },
  '/v1/close': {
    post: post('Ends open work with its true cost.', object({ hold: TEXT, cost: TRUE_COST, call: CALL }, ['cost', 'call']), {
      200: ref('Closed'),
    }),
  },
  '/v1/heartbeat': { post: post('Keeps a permit.', object({ permit: TEXT }), { 200: object({ renewed: { const: true } }) }) },
  '/v1/release': { post: post('Gives a permit back.', object({ permit: TEXT }), { 200: object({ released: { const: true } }) }) },
  '/v1/refund': {
    post: post('Gives tokens back to a key.', object({ policy: POLICY, key: KEY, tokens: TOKENS }), { 200: ref('Decision') }, ADMIN),
  },
  '/v1/penalize': {
    post: post('Takes tokens, also into debt.', object({ policy: POLICY, key: KEY, tokens: TOKENS }), { 200: ref('Decision') }, ADMIN),
  },
  '/v1/block': {
    post: post(
      'Denies everything to a key for a time.',
      object({ policy: POLICY, key: KEY, forMs: INTEGER }),
      { 200: ref('Decision') },
      ADMIN,
    ),
  },
  '/v1/reset': { post: post('Makes a key full.', object({ policy: POLICY, key: KEY }), { 200: ref('Decision') }, ADMIN) },
  '/v1/reload': {
    post: { summary: 'Reads the configuration again.', responses: responses({ 200: object({ reloaded: { const: true } }) }), ...ADMIN },
  },
  '/json': {
    post: {
      ...post("A request to Envoy's rate limit service as JSON, of any content type. 429 is OVER_LIMIT.", ref('RateLimitRequest'), {
        200: ref('RateLimitResponse'),
        429: ref('RateLimitResponse'),
      }),
    },
  },
  '/v1/diff': { get: { summary: 'Differences of the candidate.', responses: responses({ 200: { type: 'object' } }), ...ADMIN } },
  '/livez': { get: text('The process answers.', [200]) },
  '/healthcheck': { get: text("As Envoy's ratelimit service.", [200, 500]) },
  '/readyz': { get: text('Requests are welcome.', [200, 503]) },
  '/startupz': { get: text('The start is done.', [200, 503]) },
  '/metrics': { get: text('Metrics for Prometheus.', [200]) },
}

/** The description of the HTTP interface, OpenAPI 3.1. */
const OPENAPI: Schema = {
  openapi: '3.1.0',
  info: { title: 'Sluicegate', version: VERSION, license: { name: 'MIT', identifier: 'MIT' } },
  paths: PATHS,
  components: {
    schemas: SCHEMAS,
    responses: {
      Problem: {
        description: 'The request cannot be answered as it is.',
        content: { 'application/problem+json': { schema: ref('Problem') } },
      },
    },
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
  },
}

/** `/openapi.json`. */
export function openapiRoute(): Route {
  const body = Buffer.from(JSON.stringify(OPENAPI))
  return {
    GET: (_, response) => reply(response, 200, JSON_TYPE, body),
    HEAD: (_, response) => reply(response, 200, JSON_TYPE, body),
  }
}
