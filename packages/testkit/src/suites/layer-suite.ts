import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import {
  concurrency,
  fixedWindow,
  gcra,
  type Limiter,
  type Policy,
  slidingLog,
  slidingWindow,
  tokenBucket,
  type WaitOptions,
} from '../../../sluicegate/dist/index.js'
import type { SharedLimiter } from '../../../sluicegate/dist/shared/shared-limiter.js'
import type { SharedOptions } from '../../../sluicegate/dist/shared/shared-options.js'

/** A limiter whose clock need not move during a test. */
interface ChangedSubject {
  readonly limiter: {
    take(key: string, cost?: number): Awaitable<Decision>
    peek(key: string, cost?: number): Awaitable<Decision>
    wait(key: string, options?: WaitOptions): Promise<Decision>
    reset(key: string): Awaitable<Decision>
    refund(key: string, tokens: number): Awaitable<Decision>
    update(policy: Policy): void
  }
  /** Lets all that is on its way arrive. */
  settle(): Promise<void>
  stop(): Awaitable<void>
}

/** Long enough that no window ends, and nothing flows back, while a test runs; a run at its end sees the next one. */
const options = (limit: number, name: string) => ({ limit, window: '10d', name }) as const
const MAKERS = { tokenBucket, gcra, fixedWindow, slidingWindow, slidingLog }

function policyOf(maker: keyof typeof MAKERS, limit: number, name: string): Policy {
  const own = options(limit, name)
  return maker === 'gcra' ? gcra({ ...own, burst: limit }) : MAKERS[maker](own)
}

/** That those who have booked ahead pass at once when a reset, a refund or an update makes room, under each algorithm. */
export function feltChanges(
  name: string,
  make: (policy: Policy) => Awaitable<ChangedSubject>,
  changes: readonly ('reset' | 'refund' | 'update')[] = ['reset', 'refund', 'update'],
): void {
  for (const maker of Object.keys(MAKERS) as (keyof typeof MAKERS)[]) {
    for (const change of changes) {
      test(`${name}, ${maker}: after ${change} those who have booked pass at once, in their order, and are charged`, async () => {
        const own = `${maker} ${change}`
        const { limiter, settle, stop } = await make(policyOf(maker, 10, own))
        const passed: string[] = []
        const wait = async (one: string): Promise<void> => {
          const { allowed } = await limiter.wait('k', { cost: 3 })
          passed.push(allowed ? one : `${one} denied`)
        }
        try {
          await limiter.take('k', 10)
          for (const one of ['a', 'b', 'c']) wait(one).catch(() => undefined)
          await settle()
          assert.deepEqual(passed, [])
          if (change === 'reset') await limiter.reset('k')
          else if (change === 'refund') await limiter.refund('k', 9)
          else limiter.update(policyOf(maker, 40, own))
          await settle()
          assert.deepEqual(passed, ['a', 'b', 'c'])
          const { remaining } = await limiter.peek('k')
          assert.ok(remaining <= (change === 'update' ? 21 : 1), `${remaining} are left`)
        } finally {
          await stop()
        }
      })
    }
  }
}

/** Looks that may fail. */
const MOST_LOOKS = 4

/** That those who have booked ahead hear within about a second when another process gives back what they wait for, all or some of it. */
export function feltGifts(
  name: string,
  make: (policy: Policy) => { readonly limiter: SharedLimiter; readonly other: SharedLimiter },
  second: () => Promise<void>,
): void {
  const BUCKETS = ['tokenBucket', 'gcra'] as const
  const cases: readonly { readonly maker: keyof typeof MAKERS; readonly gift: number; readonly passed: string; readonly left: number }[] = [
    ...(Object.keys(MAKERS) as (keyof typeof MAKERS)[]).map((maker) => ({
      maker,
      gift: Number.POSITIVE_INFINITY,
      passed: 'a,b,c',
      left: 1,
    })),
    // All three have booked until nine tokens have flowed back.
    ...BUCKETS.map((maker) => ({ maker, gift: 19, passed: 'a,b,c', left: 1 })),
    ...BUCKETS.map((maker) => ({ maker, gift: 9, passed: 'a,b,c', left: 0 })),
    ...BUCKETS.map((maker) => ({ maker, gift: 6, passed: 'a,b', left: 0 })),
    ...BUCKETS.map((maker) => ({ maker, gift: 2, passed: '', left: 0 })),
  ]

  test(`${name}: what another process gives back by a reset or a refund reaches those who have booked within a second`, async () => {
    const lives = cases.map(({ maker, gift }) => ({
      ...make(policyOf(maker, 10, `${maker}, ${gift} by another`)),
      maker,
      gift,
      passed: [] as string[],
    }))
    for (const { limiter, other, passed } of lives) {
      await other.take('k', 10)
      for (const one of ['a', 'b', 'c']) {
        limiter.wait('k', { cost: 3 }).then(
          ({ allowed }) => passed.push(allowed ? one : `${one} denied`),
          () => undefined,
        )
      }
    }
    await second()
    for (const { passed } of lives) assert.deepEqual(passed, [])
    await Promise.all(lives.map(({ other, gift }) => (gift < 20 ? other.refund('k', gift) : other.reset('k'))))
    await second()
    // A look that is not answered in time, as on a busy machine, is followed by another.
    const isHeard = (): boolean => lives.every(({ passed }, i) => passed.join() === cases[i]?.passed)
    for (let more = 0; more < MOST_LOOKS && !isHeard(); more++) await second()
    const ends = lives.map(async ({ maker, gift, limiter, other, passed }) => {
      const { remaining } = await other.peek('k')
      limiter.close()
      other.close()
      return { maker, gift, passed: passed.join(), left: remaining }
    })
    assert.deepEqual(await Promise.all(ends), cases)
  })
}

/** A limiter of this process or of a fleet: each verb answers with its value or a promise of it. */
export type AnyLimiter = Limiter | SharedLimiter

export type LayerChoice = Pick<SharedOptions, 'policyFor' | 'policies' | 'allow' | 'deny' | 'shadow' | 'hotKeys'>

/** Makes limiters of one kind, each with its own state. */
export interface LayerHarness {
  readonly name: string
  /** Whether what a key has spent is spent under any next policy; otherwise only under one of the same name. */
  readonly carries?: boolean
  /** @param served all policies that the limiter may meet. */
  make(policy: Policy, options: LayerChoice, served?: readonly Policy[]): AnyLimiter
}

// As long as that no window ends meanwhile, and large enough to be leased.
const window = '365d'
const FREE = fixedWindow({ limit: 30, window, name: 'free' })
const PRO = fixedWindow({ limit: 60, window, name: 'pro' })
const SLOTS = concurrency({ limit: 2, name: 'slots' })
const PLANS: Readonly<Record<string, Policy>> = { p: PRO, f: FREE }
const policyFor = (key: string): Policy | undefined => PLANS[key[0] as string]
const NEVER = Number.POSITIVE_INFINITY

/** How many of a number of takes pass. */
export async function passed(limiter: AnyLimiter, key: string, takes: number): Promise<number> {
  let count = 0
  for (let i = 0; i < takes; i++) if ((await limiter.take(key)).allowed) count++
  return count
}

/** What a call throws or rejects with. */
export async function refused(call: () => unknown, expected: object): Promise<void> {
  await assert.rejects(async () => call(), expected)
}

/** Tiers, and layers together: the same over every kind of limiter. */
export function layerSuite({ name, make, carries = false }: LayerHarness): void {
  const tiered = (options: LayerChoice = {}): AnyLimiter => make(FREE, { policyFor, ...options }, [FREE, PRO])

  test(`${name}: jobs that wait for a limiter with tiers end when it is closed`, async () => {
    const limiter = tiered()
    await passed(limiter, 'f', 30)
    limiter.queue.pause()
    const job = assert.rejects(
      limiter.run('f', () => undefined),
      { name: 'QueueError', code: 'CLOSED' },
    )
    limiter.close()
    await job
  })

  for (const policies of [undefined, [PRO, FREE]]) {
    const how = policies === undefined ? 'made as they come' : 'named beforehand'

    test(`${name}: each key is limited by its own policy, ${how}`, async () => {
      using limiter = tiered(policies && { policies })
      for (const [key, policy] of [
        ['p', PRO],
        ['f', FREE],
        ['other', FREE],
      ] as const) {
        assert.equal((await limiter.peek(key, policy.limit + 1)).retryAfterMs, NEVER)
        assert.equal(await passed(limiter, key, policy.limit + 5), policy.limit)
        assert.deepEqual([(await limiter.peek(key)).policy, limiter.policy.name], [policy.name, 'free'])
      }
    })
  }

  test(`${name}: every verb goes to the policy of its key`, async () => {
    using limiter = tiered()
    await limiter.penalize('p', 50)
    await limiter.refund('p', 20)
    assert.equal(await passed(limiter, 'p', 40), 30)
    assert.ok((await limiter.block('p', '1h')).retryAfterMs > 0)
    assert.equal((await limiter.wait('p', { maxWait: 0 })).allowed, false)
    assert.equal((await limiter.reset('p')).remaining, 60)
    assert.deepEqual([(await limiter.wait('p', { cost: 10 })).policy, (await limiter.key('p').take(10)).policy], ['pro', 'pro'])
    assert.equal(await passed(limiter, 'p', 50), 40)
    const booked = await limiter.reserve('p booked', 50)
    assert.deepEqual([booked.allowed, booked.waitMs], [true, 0])
    await booked.settle(40)
    assert.equal(await passed(limiter, 'p booked', 30), 20)
    assert.equal(await passed(limiter, 'f', 40), 30)
  })

  test(`${name}: a policy made anew for each call finds what counts for its equal`, async () => {
    using limiter = tiered({ policyFor: () => fixedWindow({ limit: 60, window, name: 'pro' }) })
    assert.equal(await passed(limiter, 'k', 70), 60)
  })

  test(`${name}: a key whose policy changes ${carries ? 'takes along what it has spent' : 'starts afresh, and finds its old account when it comes back'}`, async () => {
    let isPro = false
    using limiter = tiered({ policyFor: () => (isPro ? PRO : undefined) })
    const bound = limiter.key('k')
    for (let i = 0; i < 20; i++) assert.equal((await bound.take()).policy, 'free')
    isPro = true
    assert.equal((await bound.take()).policy, 'pro')
    assert.equal(await passed(limiter, 'k', 70), carries ? 39 : 59)
    isPro = false
    assert.equal(await passed(limiter, 'k', 20), carries ? 0 : 10)
  })

  test(`${name}: what policyFor returns is a policy that was named, or undefined`, async () => {
    using named = tiered({ policies: [FREE] })
    await refused(() => named.take('p'), { name: 'PolicyError', code: 'POLICY_INVALID', option: 'policyFor' })
    for (const wrong of [null, 'pro', {}, 5, Promise.resolve(PRO), SLOTS]) {
      using limiter = tiered({ policyFor: () => wrong as never })
      await refused(() => limiter.take('k'), { name: 'PolicyError', code: 'POLICY_INVALID', option: 'policyFor' })
      await refused(() => limiter.wait('k'), { code: 'POLICY_INVALID' })
    }
  })

  test(`${name}: keys are single strings where each has a policy of its own`, async () => {
    using limiter = tiered()
    for (const key of [['p', 'f'], '', 5, null]) {
      for (const verb of ['take', 'peek', 'wait', 'reset', 'key'] as const) {
        await refused(() => limiter[verb](key as string), { code: 'KEY_INVALID', option: 'key' })
      }
    }
  })

  test(`${name}: bad options are refused before anything is made`, () => {
    const cases: readonly (readonly [object, string, string])[] = [
      [{ policyFor: PRO }, 'OPTION_INVALID', 'policyFor'],
      [{ policyFor: undefined, policies: [PRO] }, 'OPTION_INVALID', 'policies'],
      [{ policies: PRO }, 'OPTION_INVALID', 'policies'],
      [{ policies: [PRO, SLOTS] }, 'POLICY_INVALID', 'policies[1]'],
      [{ policies: Array.from({ length: 1001 }, () => PRO) }, 'OPTION_INVALID', 'policies'],
      [{ allow: 'k' }, 'OPTION_INVALID', 'allow'],
      [{ deny: [''] }, 'KEY_INVALID', 'deny'],
      [{ shadow: 'yes' }, 'OPTION_INVALID', 'shadow'],
      [{ overrides: 'yes' }, 'OPTION_INVALID', 'overrides'],
      [{ allowed: [] }, 'OPTION_UNKNOWN', 'allowed'],
    ]
    for (const [options, code, option] of cases) assert.throws(() => tiered(options), { name: 'PolicyError', code, option })
  })

  test(`${name}: counters and hot keys are those of all policies together`, async () => {
    using limiter = tiered({ hotKeys: 10 })
    for (const key of ['p', 'p', 'p', 'f', 'x', 'x']) await limiter.take(key)
    const counts = limiter.hotKeys(2).demand.map(({ key, count }) => [key, count])
    assert.deepEqual(counts, [
      ['p', 3],
      ['x', 2],
    ])
    const stats = limiter.stats()
    assert.equal('admittedTokens' in stats ? stats.admittedTokens : stats.keys + 3, 6)
    if ('shards' in limiter) assert.ok(limiter.shards().calls >= 3)
  })

  test(`${name}: an update changes the limiter's own policy only`, async () => {
    using limiter = tiered({ policies: [PRO] })
    await limiter.take('p')
    await limiter.take('f', 20)
    limiter.update(fixedWindow({ limit: 40, window, name: 'free' }))
    // Where the policy is another process's, it has to hear of it.
    for (let i = 0; i < 10; i++) await limiter.peek('x')
    assert.equal(await passed(limiter, 'f', 50), 20)
    assert.equal(await passed(limiter, 'p', 70), 59)
  })

  test(`${name}: close closes all policies`, async () => {
    const limiter = tiered({ allow: ['friend'] })
    await limiter.take('p')
    limiter.close()
    for (const key of ['p', 'f', 'friend']) await refused(() => limiter.take(key), { code: 'CLOSED' })
    await refused(() => limiter.wait('p'), { code: 'CLOSED' })
  })

  test(`${name}: a bucket has its tiers, too`, async () => {
    const own = tokenBucket({ limit: 5, window: '1h', name: 'slow' })
    const fast = tokenBucket({ limit: 10, window: '1h', name: 'fast' })
    using limiter = make(own, { policyFor: (key) => (key === 'f' ? fast : undefined) }, [own, fast])
    assert.deepEqual([await passed(limiter, 'f', 12), await passed(limiter, 's', 12)], [10, 5])
  })

  test(`${name}: lists and shadow come first: a tier hears of no listed key, and its denials pass`, async () => {
    using limiter = tiered({ allow: ['p friend'], deny: ['foe'], shadow: true })
    assert.deepEqual([(await limiter.take('p friend', 500)).remaining, (await limiter.take('p friend')).policy], [60, 'pro'])
    assert.deepEqual([(await limiter.take('foe')).allowed, (await limiter.take('foe')).wouldDeny], [true, true])
    await limiter.take('p', 60)
    assert.equal((await limiter.take('p')).wouldDeny, true)
  })
}
