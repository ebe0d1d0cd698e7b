import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createClient } from '@redis/client'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { FaultProxy } from 'sluicegate-testkit/servers/fault-proxy.js'
import { until } from 'sluicegate-testkit/servers/until.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, concurrency, fixedWindow, type Policy, tokenBucket } from '../index.js'
import { region } from '../regions/index.js'
import type { RegionOptions } from '../regions/region-options.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { casStore } from '../store/index.js'
import { memoryStore } from '../store-testing/index.js'
import { redis } from './redis.js'
import type { RedisClient } from './runner-for.js'

// Two regions, each with its own server, and a home behind a proxy for each of them.

interface Site {
  readonly store: OwnRedis
  readonly ocean: FaultProxy
  readonly homeClient: RedisClient
  close(): void
}

let home: OwnRedis
let west: Site
let east: Site
const limiters: SharedLimiter[] = []

async function site(): Promise<Site> {
  const store = await ownRedis()
  const ocean = await FaultProxy.before(home.server)
  const homeClient = createClient({ url: ocean.url })
  homeClient.on('error', () => undefined)
  await homeClient.connect()
  return { store, ocean, homeClient, close: () => homeClient.destroy() }
}

function limiterIn(
  { store, homeClient }: Site,
  name: string,
  policy: Policy,
  more: Partial<RegionOptions> = {},
  options: Partial<SharedOptions> = {},
): SharedLimiter {
  const where = region({ name, local: redis(store.client), home: redis(homeClient), timeout: 300, ...more })
  const limiter = createLimiter(policy, { store: where, ...options })
  limiters.push(limiter)
  return limiter
}

before(async () => {
  home = await ownRedis()
  west = await site()
  east = await site()
})

after(async () => {
  for (const limiter of limiters) limiter.close()
  for (const { store, ocean, close } of [west, east]) {
    close()
    await ocean.stop()
    await store.stop()
  }
  await home.stop()
})

async function passedOf(limiter: SharedLimiter, key: string, takes: number): Promise<number> {
  const decisions = await Promise.all(Array.from({ length: takes }, () => limiter.take(key)))
  return decisions.filter(({ allowed }) => allowed).length
}

test('two regions admit together what the policy says, and not one more', async () => {
  const policy = fixedWindow({ limit: 100, window: '1h', name: 'together' })
  const [a, b] = [limiterIn(west, 'west', policy), limiterIn(east, 'east', policy)]
  let passed = 0
  const round = async (): Promise<void> => {
    const [inWest, inEast] = await Promise.all([passedOf(a, 'k', 5), passedOf(b, 'k', 5)])
    passed += inWest + inEast
  }
  // A region that was denied waits for its renewal, and what the other one holds unspent comes back after seconds.
  await until('nearly all has passed', async () => {
    await round()
    return passed >= 95
  })
  for (let more = 0; more < 20; more++) await round()
  assert.ok(passed <= 100, `${passed} passed`)
})

test('takes of a warm key are decided in the region, and its tokens are renewed in the background', async () => {
  const limiter = limiterIn(west, 'west', tokenBucket({ limit: 1000, window: '1s', burst: 20_000, name: 'warm' }))
  const renewed = (): number => limiter.stats().region?.renewals ?? 0
  await until('renewals', async () => {
    await passedOf(limiter, 'k', 20)
    return renewed() > 2
  })
  const { region, mode } = limiter.stats().region ?? {}
  assert.deepEqual([region, mode], ['west', 'tokens'])
  // On a machine that is busy elsewhere leases may come too late, and each take is a call.
  await until('takes without calls to the home', async () => {
    const calls = (): number => (limiter.stats().region?.homeCalls ?? 0) - renewed()
    const before = calls()
    assert.equal(await passedOf(limiter, 'k', 400), 400)
    return calls() - before <= 3
  })
})

test('a policy too small to split is decided at the home, and stats say why', async () => {
  const policy = tokenBucket({ limit: 10, window: '1h', name: 'small' })
  const limiter = limiterIn(west, 'west', policy)
  assert.equal(await passedOf(limiter, 'k', 30), 10)
  const { mode, why, homeCalls = 0 } = limiter.stats().region ?? {}
  assert.equal(mode, 'home')
  assert.match(why ?? '', /fewer than 20 tokens/)
  assert.ok(homeCalls >= 30)
})

test('permits are held at the home', async () => {
  const policy = concurrency({ limit: 2, ttl: '10s', name: 'permits' })
  const [a, b] = [limiterIn(west, 'west', policy), limiterIn(east, 'east', policy)]
  const first = (await a.take('k')) as unknown as { allowed: boolean; release(): Promise<boolean> }
  assert.ok(first.allowed)
  assert.ok((await b.take('k')).allowed)
  assert.ok(!(await b.take('k')).allowed)
  assert.ok(await first.release())
  assert.ok((await b.take('k')).allowed)
})

test('while the home does not answer, each region admits its share, which is charged afterwards', async () => {
  const policy = fixedWindow({ limit: 1000, window: '1h', name: 'cut off' })
  const limiter = limiterIn(west, 'west', policy, { share: 0.1 })
  assert.ok((await limiter.take('k')).allowed)
  west.ocean.set({ kind: 'cut' })
  try {
    let passed = 0
    const round = async (): Promise<number> => (passed += await passedOf(limiter, 'k', 10))
    await until('the share is used', async () => (await round()) >= 90)
    for (let more = 0; more < 20; more++) await round()
    assert.ok(passed <= 110, `${passed} passed without the home: a tenth, and what the region held`)
    await until('the home is out', async () => {
      await limiter.take('k')
      return limiter.stats().region?.isHomeOut === true
    })
    assert.equal((await limiter.peek('another')).source, 'outage')
  } finally {
    west.ocean.set({ kind: 'none' })
  }
  const other = limiterIn(east, 'east', policy, { share: 0.1 })
  await until('the charge at the home', async () => {
    await passedOf(limiter, 'k', 10)
    return (limiter.stats().region?.accountedTokens ?? 0) > 50
  })
  assert.ok((await other.peek('k')).remaining < 900)
})

test('what a region admits of few requests, or of a small policy, without the home is charged with the next call for the key', async () => {
  for (const policy of [fixedWindow({ limit: 500, window: '1h', name: 'rare' }), fixedWindow({ limit: 10, window: '1h', name: 'few' })]) {
    const limiter = limiterIn(west, 'west', policy, { share: 0.5 })
    assert.ok((await limiter.take('k')).allowed)
    west.ocean.set({ kind: 'cut' })
    try {
      await until('takes by the share', async () => (await limiter.take('k')).source === 'outage')
      assert.equal(await passedOf(limiter, 'k', 2), 2)
    } finally {
      west.ocean.set({ kind: 'none' })
    }
    await until('the charge', async () => {
      await limiter.take('k')
      return (limiter.stats().region?.accountedTokens ?? 0) >= 3
    })
  }
})

test('a permit of the share is released in its region', async () => {
  const limiter = limiterIn(east, 'east', concurrency({ limit: 10, ttl: '1m', name: 'permits alone' }), { share: 0.1 })
  east.ocean.set({ kind: 'cut' })
  try {
    const permit = (await limiter.take('k')) as unknown as { allowed: boolean; release(): Promise<boolean> }
    assert.ok(permit.allowed)
    assert.ok(!(await limiter.take('k')).allowed)
    assert.ok(await permit.release())
    assert.ok((await limiter.take('k')).allowed)
  } finally {
    east.ocean.set({ kind: 'none' })
  }
})

test('counters of tiers are summed, also those of the region', async () => {
  const base = fixedWindow({ limit: 100, window: '1h', name: 'base' })
  const pro = fixedWindow({ limit: 1000, window: '1h', name: 'pro' })
  const limiter = limiterIn(west, 'west', base, {}, { policyFor: (key) => (key === 'pro' ? pro : undefined), policies: [pro] })
  await limiter.take('pro')
  await limiter.take('other')
  const { region, homeCalls = 0 } = limiter.stats().region ?? {}
  assert.equal(region, 'west')
  assert.ok(homeCalls >= 2, `${homeCalls} calls`)
})

test('the home is out where it is for one tier', async () => {
  const [base, pro] = ['free tier', 'paid tier'].map((name) => fixedWindow({ limit: 5, window: '1h', name })) as [Policy, Policy]
  const limiter = limiterIn(west, 'west', base, {}, { policyFor: (key) => (key === 'pro' ? pro : undefined), policies: [pro] })
  assert.equal(limiter.stats().region?.isHomeOut, false)
  west.ocean.set({ kind: 'cut' })
  try {
    await until('the home is out', async () => {
      await limiter.take('pro')
      return limiter.stats().region?.isHomeOut === true
    })
  } finally {
    west.ocean.set({ kind: 'none' })
  }
})

test('regions are counted where their shares are declared, too', async () => {
  const policy = fixedWindow({ limit: 1000, window: '1h', name: 'declared' })
  const [a, b] = [limiterIn(west, 'west', policy, { share: 0.3 }), limiterIn(east, 'east', policy, { share: 0.5 })]
  await b.take('k')
  await until('both are counted', async () => {
    await a.take('k')
    return a.stats().region?.regions === 2
  })
  assert.equal(a.stats().region?.share, 0.3)
})

test('with a share of 0 nothing passes without the home, and without an error', async () => {
  const policy = fixedWindow({ limit: 1000, window: '1h', name: 'closed' })
  const limiter = limiterIn(east, 'east', policy, { share: 0 })
  east.ocean.set({ kind: 'cut' })
  try {
    const { allowed, source, retryAfterMs } = await limiter.take('k')
    assert.deepEqual({ allowed, source }, { allowed: false, source: 'outage' })
    assert.ok(retryAfterMs > 0)
    await assert.rejects(async () => limiter.refund('k', 1), { code: 'OUTAGE' })
  } finally {
    east.ocean.set({ kind: 'none' })
  }
})

test('with `cold: share` a key begins in its region, and is charged at the home', async () => {
  const policy = fixedWindow({ limit: 1000, window: '1h', name: 'cold' })
  const limiter = limiterIn(west, 'west', policy, { share: 0.1, cold: 'share' }, { mode: 'exact' })
  const decision = await limiter.take('k')
  assert.ok(decision.allowed)
  assert.equal(limiter.stats().region?.homeCalls, 0)
})

test('a ban is in force in its region at once, and in others with their next message', async () => {
  const policy = tokenBucket({ limit: 100, window: '1s', burst: 1000, name: 'bans' })
  const [a, b] = [limiterIn(west, 'west', policy), limiterIn(east, 'east', policy)]
  await until('renewals in both regions', async () => {
    await Promise.all([passedOf(a, 'k', 5), passedOf(b, 'k', 5)])
    return (a.stats().region?.renewals ?? 0) > 0 && (b.stats().region?.renewals ?? 0) > 0
  })
  await a.block('k', '1m')
  assert.ok(!(await a.take('k')).allowed)
  await until('the ban in the other region', async () => !(await b.take('k')).allowed)
  await a.block('k', 0)
  await until('the end of the ban', async () => (await a.take('k')).allowed)
})

test('refund, penalize, reserve, settle, reset and peek answer as the home does', async () => {
  const policy = fixedWindow({ limit: 100, window: '1h', name: 'verbs' })
  const limiter = limiterIn(west, 'west', policy)
  await limiter.penalize('k', 40)
  assert.equal((await limiter.peek('k')).remaining, 60)
  assert.equal((await limiter.refund('k', 10)).remaining, 70)
  const reservation = await limiter.reserve('k', 20)
  assert.ok(reservation.allowed)
  assert.equal((await limiter.peek('k')).remaining, 50)
  assert.equal((await reservation.settle(5)).remaining, 65)
  assert.equal((await limiter.reset('k')).remaining, 100)
})

test('several policies are charged together, and what was drawn of one goes back when another denies', async () => {
  const policy = allOf([
    fixedWindow({ limit: 100, window: '1h', name: 'hourly' }),
    tokenBucket({ limit: 5, window: '1s', burst: 60, name: 'burst' }),
  ])
  const [a, b] = [limiterIn(west, 'west', policy), limiterIn(east, 'east', policy)]
  let passed = 0
  for (let round = 0; round < 30; round++) {
    const [inWest, inEast] = await Promise.all([passedOf(a, 'k', 3), passedOf(b, 'k', 3)])
    passed += inWest + inEast
  }
  assert.ok(passed >= 20 && passed <= 100, `${passed} passed`)
})

test('an update is in force at once in its process, and what was spent stays spent', async () => {
  const limiter = limiterIn(west, 'west', fixedWindow({ limit: 100, window: '1h', name: 'updated' }))
  assert.equal(await passedOf(limiter, 'k', 60), 60)
  limiter.update(fixedWindow({ limit: 50, window: '1h', name: 'updated' }))
  assert.equal(await passedOf(limiter, 'k', 5), 0)
})

test('overrides are kept at the home, and reach every region', async () => {
  const policy = fixedWindow({ limit: 100, window: '1h', name: 'overridden' })
  const options = { overrides: { maxAge: 10 } } as const
  const make = ({ store, homeClient }: Site, name: string) =>
    createLimiter(policy, { store: region({ name, local: redis(store.client), home: redis(homeClient), timeout: 300 }), ...options })
  const [a, b] = [make(west, 'west'), make(east, 'east')]
  limiters.push(a, b)
  await a.overrides.set('vip', fixedWindow({ limit: 500, window: '1h' }))
  await until('the override in the other region', async () => (await b.take('vip')).limit === 500)
})

test('misuse of the option says what to do', () => {
  const policy = fixedWindow({ limit: 100, window: '1h' })
  const [local, home] = [redis(west.store.client), redis(west.homeClient)]
  const make = (given: object) => () => region({ local, home, ...given } as never)
  assert.throws(make({}), { code: 'OPTION_INVALID', message: /name.*'eu-west'/ })
  assert.throws(make({ name: 'a b' }), { code: 'OPTION_INVALID' })
  assert.throws(make({ name: 'west', share: 2 }), { code: 'OPTION_INVALID', message: /share/ })
  assert.throws(make({ name: 'west', cold: 'maybe' }), { code: 'OPTION_INVALID', message: /'home', 'share'/ })
  assert.throws(make({ name: 'west', shares: 1 }), { code: 'OPTION_UNKNOWN' })
  for (const wrong of [undefined, west.homeClient, memoryStore()]) {
    assert.throws(make({ name: 'west', home: wrong }), { code: 'OPTION_INVALID', option: 'home', message: /redis\(client\)/ })
  }
  const kept = casStore(memoryStore())
  const over =
    (given: object, options: object = {}, which: Policy = policy) =>
    () =>
      createLimiter(which, { store: region({ name: 'west', local, home, ...given }), ...options })
  const nested = region({ name: 'west', local, home })
  for (const option of ['local', 'home'])
    assert.throws(over({ [option]: nested }), { code: 'OPTION_INVALID', option, message: /cannot be region west: give redis\(client\)/ })
  assert.throws(over({ home: kept }, { overrides: true }), { code: 'OPTION_INVALID', message: /use policyFor/ })
  const { name, read, swap } = memoryStore()
  const apart = casStore({ name, read, swap })
  for (const option of ['local', 'home']) {
    assert.throws(over({ [option]: apart }, {}, allOf([policy, fixedWindow({ limit: 9, window: '1s' })])), {
      code: 'CROSS_SLOT',
      message: /swapAll/,
    })
  }
})

test('a policy too small to hold tokens of is split by fixed shares where that is chosen: no call to the home, and together the policy', async () => {
  const policy = tokenBucket({ limit: 40, window: '1h', burst: 40, name: 'split' })
  const small = allOf([policy, tokenBucket({ limit: 100, window: '1s', name: 'short' })])
  const own = { share: 0.5, tooSmall: 'share' } as const
  const [a, b] = [limiterIn(west, 'west', small, own), limiterIn(east, 'east', small, own)]
  const passed = (await passedOf(a, 'k', 30)) + (await passedOf(b, 'k', 30))
  assert.equal(passed, 40)
  const { mode, why, homeCalls } = a.stats().region ?? {}
  assert.deepEqual({ mode, why, homeCalls }, { mode: 'share', why: 'short: its burst is less than the rate brings in 4 s', homeCalls: 0 })
})

test('a share of less than a token is not split: the home decides', async () => {
  const small = limiterIn(west, 'west', fixedWindow({ limit: 3, window: '1h', name: 'three' }), { share: 0.25, tooSmall: 'share' })
  assert.equal(await passedOf(small, 'k', 5), 3)
  assert.equal(small.stats().region?.mode, 'home')
})

test('a share of a window is rounded down to whole tokens, and stats say so', async () => {
  const policy = fixedWindow({ limit: 5, window: '1h', name: 'five' })
  const whyOf = (share: number): string | undefined => limiterIn(west, 'west', policy, { share, tooSmall: 'share' }).stats().region?.why
  assert.match(whyOf(1 / 3) ?? '', /a share of 0.333 of 5 tokens is rounded down to 1/)
  assert.doesNotMatch(whyOf(0.4) ?? '', /rounded/)
  const most = fixedWindow({ limit: 10, window: '10s', name: 'of ten' })
  assert.equal(await passedOf(limiterIn(west, 'west', most, { share: 0.7, tooSmall: 'share' }), 'k', 10), 7)
})

test('shares of a small policy have to be given', () => {
  const policy = fixedWindow({ limit: 3, window: '1h' })
  assert.throws(() => limiterIn(west, 'west', policy, { tooSmall: 'share' }), { code: 'OPTION_INVALID', option: 'share' })
  assert.throws(() => limiterIn(west, 'west', policy, { tooSmall: 'split' as 'share' }), {
    code: 'OPTION_INVALID',
    option: 'tooSmall',
  })
})
