import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { fleet } from 'sluicegate-testkit/cluster/channel-pair.js'
import { HeldScripts } from 'sluicegate-testkit/redis/held-scripts.js'
import { HeaderWriter } from './http.js'
import {
  allOf,
  attachLimiter,
  concurrency,
  createLimiter,
  fixedWindow,
  type Limiter,
  type Policy,
  PolicyError,
  restoreLimiter,
  tokenBucket,
} from './index.js'
import type { WithOverrides } from './overrides.js'
import { createRateTable } from './rate-table/index.js'
import { redis, scriptedStore } from './redis/redis.js'
import type { SharedOptions } from './shared/shared-options.js'

/** A client's key, which no log may show. */
const KEY = 'mallory@example.org'
const BUCKET = tokenBucket({ limit: 5, window: '1h', name: 'login' })

/** Where none are kept. */
const NO_OVERRIDES = { load: async () => ({ version: 1, policies: [] }), set: async () => true, delete: async () => false }

/** All ways in which an object gets into a log. */
function logged(value: unknown): string {
  const whole = { depth: Number.POSITIVE_INFINITY, showHidden: true, maxArrayLength: null, maxStringLength: null } as const
  return [inspect(value, whole), inspect({ value }, whole), JSON.stringify(value), JSON.stringify({ value })].join('\n')
}

function secretsOf(limiter: Limiter): string[] {
  const { secret, parts } = limiter.handle() as unknown as { secret?: readonly number[]; parts?: readonly { secret: readonly number[] }[] }
  return (secret ?? parts?.[0]?.secret ?? []).map(String)
}

function checkSilent(value: unknown, secrets: readonly string[], what: string): void {
  const text = logged(value)
  for (const secret of [KEY, ...secrets]) assert.ok(!text.includes(secret), `${what} shows ${secret}: ${text.slice(0, 2_000)}`)
  assert.ok(text.length < 4_000, `${what} shows ${text.length} characters`)
}

const LIMITERS: Readonly<Record<string, () => Limiter>> = {
  'of one policy': () => createLimiter(BUCKET, { hotKeys: 10 }),
  'of permits': () => createLimiter(concurrency({ limit: 5 })) as unknown as Limiter,
  'of several policies': () => createLimiter(allOf([BUCKET, fixedWindow({ limit: 9, window: 'day' })]), { hotKeys: 10 }),
  'with lists': () => createLimiter(BUCKET, { allow: [KEY], deny: [`${KEY}!`] }),
  'with bans': () => createLimiter(BUCKET, { banAfter: { denials: 3, within: '1m', for: '1h' } }),
  'in the shadow': () => createLimiter(BUCKET, { shadow: true }),
  'that bans': () => createLimiter(BUCKET, { banAfter: { denials: 9, within: '1m', for: '1h' } }),
  'with tiers': () => createLimiter(BUCKET, { policyFor: () => undefined, policies: [tokenBucket({ limit: 9, window: '1h' })] }),
}

for (const [name, make] of Object.entries(LIMITERS)) {
  test(`a limiter ${name}, and all that it gives, shows neither its secret nor keys to logs`, async () => {
    const limiter = make()
    const secrets = secretsOf(limiter)
    assert.equal(secrets.length, 2)
    const waiting = limiter.wait(KEY)
    const given: Readonly<Record<string, unknown>> = {
      limiter,
      decision: limiter.take(KEY),
      'bound key': limiter.key(KEY),
      reservation: limiter.reserve(KEY, 1),
      handle: limiter.handle(),
      attached: attachLimiter(structuredClone(limiter.handle()), name === 'with tiers' ? { policyFor: () => undefined } : {}),
      stats: limiter.stats(),
      'what waits': await waiting,
    }
    for (const [what, value] of Object.entries(given)) checkSilent(value, secrets, what)
    assert.match(inspect(limiter, { depth: 9 }), /Limiter \{\s+policy: \{/)
    assert.match(inspect(limiter.key(KEY)), /BoundKey/)
    limiter.close()
    assert.match(inspect(limiter), /policy: undefined/)
  })
}

test('queues and overrides do not show keys', async () => {
  const limiter = createLimiter(BUCKET, { overrides: true })
  limiter.queue.pause()
  limiter.overrides.set(KEY, tokenBucket({ limit: 9, window: '1h' }))
  const job = assert.rejects(limiter.run(KEY, () => 1))
  checkSilent(limiter.queue, [], 'queue')
  checkSilent(limiter.overrides, [], 'overrides')
  limiter.close()
  await job
})

test('a limiter that was restored shows no more', () => {
  const before = createLimiter(BUCKET)
  before.take(KEY)
  const limiter = restoreLimiter(before.snapshot())
  checkSilent(limiter, secretsOf(limiter), 'it')
})

test('the secret of a limiter is out of reach for what looks at its fields, too', () => {
  const limiter = createLimiter(BUCKET)
  const raw = inspect(limiter, { depth: 1, showHidden: true, customInspect: false })
  for (const secret of secretsOf(limiter)) assert.ok(!raw.includes(secret))
})

test('limiters of a fleet and of a cluster, and what they give, show neither keys nor their store', async () => {
  const store = new HeldScripts()
  const remote = createLimiter(BUCKET, { store: scriptedStore(store), outage: 'open', timeout: 1 })
  const layers = { policyFor: () => undefined, banAfter: { denials: 3, within: '1m', for: '1h' }, allow: ['other'], shadow: true } as const
  const layered = createLimiter(BUCKET, { store: scriptedStore(store), outage: 'open', timeout: 1, ...layers })
  const { limiter: worker, served } = fleet<Policy>(BUCKET)
  const decision = await remote.take(KEY)
  const given = {
    remote,
    decision,
    bound: remote.key(KEY),
    layered,
    layeredKey: layered.key(KEY),
    booking: await remote.reserve(KEY, 1),
    worker,
    workerKey: worker.key(KEY),
    served,
  }
  for (const [what, value] of Object.entries(given)) checkSilent(value, [], what)
  for (const limiter of [remote, layered, worker, served]) limiter.close()
})

test('layers over a fleet and a cluster, and the overrides of limiters, show neither keys nor their store', async () => {
  const layers: Readonly<Record<string, Partial<SharedOptions>>> = {
    tiers: { policyFor: () => undefined },
    overrides: { overrides: true },
    lists: { allow: [`${KEY}!`], deny: [KEY] },
    shadow: { shadow: true },
    bans: { banAfter: { denials: 1, within: '1m', for: '1h' } },
    all: { policyFor: () => undefined, deny: [`${KEY}!`], shadow: true, banAfter: { denials: 1, within: '1m', for: '1h' } },
  }
  for (const [name, options] of Object.entries(layers)) {
    const remote = createLimiter(BUCKET, {
      store: scriptedStore(new HeldScripts(), () => ({ overridesOf: () => NO_OVERRIDES })),
      outage: 'open',
      timeout: 1,
      ...options,
    })
    const { limiter: worker, served } = fleet<Policy>(BUCKET, { serve: { overrides: true }, worker: options })
    await worker.take(KEY)
    for (const [what, limiter] of Object.entries({ remote, worker })) {
      const text = `${what}, ${name}`
      checkSilent(limiter, [], text)
      checkSilent(limiter.key(KEY), [], `a bound key of ${text}`)
      assert.match(inspect(limiter, { depth: 9 }), /Limiter \{\s+policy: \{/, text)
      limiter.close()
      assert.match(inspect(limiter), /policy: undefined/, text)
    }
    served.close()
  }
})

test('overrides of a limiter are shown by their number', async () => {
  const local = createLimiter(BUCKET, { overrides: true })
  const made = fleet<Policy>(BUCKET, { serve: { overrides: true }, worker: { overrides: true } })
  const shared = made.limiter as typeof made.limiter & WithOverrides<'later'>
  const served = made.served as typeof made.served & WithOverrides
  await Promise.all([local, shared].map((one) => one.overrides.set(KEY, BUCKET)))
  for (const value of [local, local.overrides, shared, shared.overrides, served, served.overrides]) checkSilent(value, [], 'it')
  for (const { overrides } of [local, shared, served]) assert.equal(JSON.stringify(overrides), '{"keys":1}')
  for (const limiter of [local, shared, served]) limiter.close()
})

test('a header writer does not show the secret of its partition keys', () => {
  const hex = '0123456789abcdef0123456789abcdef'
  const writer = new HeaderWriter({ partitionKey: hex })
  const words = [0x67452301, 0xefcdab89].map(String)
  checkSilent(writer, [hex, ...words], 'it')
})

test('a refused value is in no log but as the message says it, and still there for a program', () => {
  const key = `${KEY} `.repeat(60)
  const client = { url: 'redis://user:hunter2@example.org' }
  using limiter = createLimiter(BUCKET)
  const calls: readonly (readonly [call: () => unknown, value: unknown])[] = [
    [() => limiter.take(key), key],
    [() => limiter.take([key] as never), undefined],
    [() => createRateTable().throttle(key.repeat(20), { maxBurst: 1, count: 1, periodS: 1 }), key.repeat(20)],
    [() => createLimiter(BUCKET, { store: redis(client as never) }), client],
  ]
  for (const [call, value] of calls) {
    try {
      call()
      assert.fail('nothing was thrown')
    } catch (error) {
      assert.ok(error instanceof PolicyError)
      const text = [logged(error), JSON.stringify(error, Object.getOwnPropertyNames(error)), String(error)].join('\n')
      assert.doesNotMatch(text, /mallory|hunter2/)
      assert.match(text, /a string of \d+ characters|an array|an object/)
      if (value !== undefined) assert.equal(error.value, value)
    }
  }
})
