import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createLimiter, manualClock, type Policy, StoreError } from 'sluicegate'
import { ipKeyGenerator, MemoryStore, rateLimit } from 'sluicegate/express-rate-limit'
import { requireRival } from '../rivals.js'
import { assertSameReplies } from './express-runs.js'
import { type Middleware, type RivalSite, siteWith } from './rival-express.js'

const theirs = requireRival('express-rate-limit') as {
  readonly rateLimit: (options: object) => Middleware
  readonly ipKeyGenerator: typeof ipKeyGenerator
  readonly MemoryStore: new () => object
}

/** The beginning of a window of any length here. */
const clock = manualClock(0)
const create = (policy: Policy) => createLimiter(policy, { clock })
const silent = { error: () => undefined, warn: () => undefined }

async function siteOf(t: TestContext, limit: Middleware, settings = {}): Promise<RivalSite> {
  const open = await siteWith(settings, limit)
  t.after(() => open.close())
  return open
}

const ADDRESSES = [
  ...['203.0.113.7', '203.0.113.7:80', '::ffff:203.0.113.7', '::ffff:cb00:7107', '::203.0.113.7', '::cb00:7107', '::', '::1'],
  ...['64:ff9b::203.0.113.7', '64:ff9b::cb00:7107', '2002:cb00:7107::1', '2001:db8::1', '2001:DB8:0:42ff::1', '2001:db8::203.0.113.7'],
  ...['fe80::1%eth0', '::203.0.113.7%eth0', '[2001:db8::1]', '1:0:0:2:0:0:0:3', '0:0:1::', '1::2:0:0', 'ffff::', 'no-address', ''],
]
const SUBNETS = [undefined, 1, 8, 16, 31, 32, 48, 56, 63, 64, 96, 97, 112, 127, 128, 0, false, '64'] as const

test('ipKeyGenerator makes the keys of express-rate-limit, of any address and subnet', () => {
  for (const ip of [...ADDRESSES, undefined as never, null as never, 7 as never]) {
    for (const subnet of SUBNETS as readonly (number | false | undefined)[]) {
      assert.equal(ipKeyGenerator(ip, subnet), theirs.ipKeyGenerator(ip, subnet), `${ip} ${subnet}`)
    }
  }
})

test('ipKeyGenerator refuses the subnets of IPv6 that express-rate-limit refuses', () => {
  for (const subnet of [-1, 129, 56.5, true as never]) {
    for (const ipKey of [theirs.ipKeyGenerator, ipKeyGenerator]) {
      assert.throws(() => ipKey('2001:db8::1', subnet))
      assert.equal(ipKey('203.0.113.7', subnet), '203.0.113.7')
    }
  }
})

test('the key of a request is the same behind a proxy', async (t) => {
  for (const ipv6Subnet of [undefined, 48, 64, false] as const) {
    const keyed = { legacyHeaders: false, requestPropertyName: 'rateLimit', ...(ipv6Subnet !== undefined && { ipv6Subnet }) }
    const settings = { 'trust proxy': 1 }
    const expected = await siteOf(t, theirs.rateLimit({ ...keyed, logger: silent }), settings)
    const actual = await siteOf(t, rateLimit({ ...keyed, create }) as Middleware, settings)
    for (const forwarded of ['203.0.113.7', '2001:db8:1:42ff::1', '::ffff:203.0.113.7', '64:ff9b::cb00:7107', '2002:cb00:7107::1']) {
      const [a, b] = [expected, actual].map((site) => site.ask('/?show=rateLimit', { 'x-forwarded-for': forwarded }))
      assert.equal(JSON.parse((await (b as typeof a))?.body ?? '').key, JSON.parse((await a)?.body ?? '').key, forwarded)
    }
  }
})

test('a logger that could not be called is refused by both; null is refused here, and the console there', () => {
  for (const make of [theirs.rateLimit, rateLimit as never as typeof theirs.rateLimit]) {
    for (const logger of [{}, { error: 'to the console' }, 'console', console.error]) assert.throws(() => make({ logger }))
  }
  assert.throws(() => rateLimit({ logger: null as never }), { option: 'logger' })
  theirs.rateLimit({ logger: null })
})

for (const validate of [undefined, true, false, { trustProxy: false }, { default: false }]) {
  test(`an app that trusts any proxy is served by both, validate: ${JSON.stringify(validate)}`, async (t) => {
    const options = { limit: 2, ...(validate !== undefined && { validate }) }
    const settings = { 'trust proxy': true }
    const expected = await siteOf(t, theirs.rateLimit({ ...options, logger: silent }), settings)
    const actual = await siteOf(t, rateLimit({ ...options, create }) as Middleware, settings)
    assert.deepEqual(await assertSameReplies(expected, actual, ['/', '/', '/?show=rateLimit', '/']), [200, 200, 429, 429])
    for (const site of [expected, actual]) assert.equal((await site.ask('/', { 'x-forwarded-for': '6.6.6.6' })).status, 200)
  })
}

test('a MemoryStore is a store for the middleware that exports it', async (t) => {
  const expected = await siteOf(t, theirs.rateLimit({ limit: 2, store: new theirs.MemoryStore() }))
  const actual = await siteOf(t, rateLimit({ limit: 2, store: new MemoryStore({ create }) }) as Middleware)
  await assertSameReplies(expected, actual, ['/', '/?show=rateLimit', '/', '/'])
})

test('a request that passes without the store has no count', async (t) => {
  const fails = (): never => {
    throw new StoreError('OUTAGE', 'not there')
  }
  const store = { increment: fails, decrement: fails, resetKey: fails }
  const options = { limit: 2, passOnStoreError: true, standardHeaders: 'draft-7', logger: silent } as const
  const broken = (policy: Policy) => ({ ...create(policy), policy, take: fails, peek: fails }) as never
  const expected = await siteOf(t, theirs.rateLimit({ ...options, store }))
  const actual = await siteOf(t, rateLimit({ ...options, create: broken }) as Middleware)
  assert.deepEqual(await assertSameReplies(expected, actual, ['/?show=rateLimit', '/', '/']), [200, 200, 200])
})
