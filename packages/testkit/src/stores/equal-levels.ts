import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AllOfPolicy, fixedWindow, levels, type Policy, type SharedLimiter, type Store } from 'sluicegate'
import { createLimiter, type SharedOptions } from '../../../sluicegate/dist/index.js'

/** Both levels, of different keys. */
const KEYS = { org: 'acme', user: 'ada' } as const
const IN_ORDER = [KEYS.org, KEYS.user] as const
/** 32 hexadecimal digits, of two works. */
const ID = '0123456789abcdef'.repeat(2)

/** Levels of the same names in every whole. */
function whole(name?: string, user = 6_000): AllOfPolicy {
  const policies = { org: fixedWindow({ limit: 200_000, window: '30d' }), user: fixedWindow({ limit: user, window: '30d' }) }
  return levels(policies, name === undefined ? {} : { name })
}

/** What is asked of limiters with levels of one name. */
export interface EqualLevelsExam {
  readonly options?: Omit<SharedOptions, 'store'>
  /** What the store does not offer, or not as one process alone sees it; `more`: all that follows a reset. */
  readonly without?: readonly ('more' | 'plans' | 'update' | 'byId' | 'newcomer' | 'unnamed')[]
}

/**
 * Two limiters over one store whose levels are called alike: wholes with names spend a budget each, by every verb; wholes without names spend one.
 *
 * @param storeOf the store of limiters of these policies; what it keeps is not that of other calls.
 */
export function equalLevels(
  name: string,
  storeOf: (policies: readonly Policy[]) => Store | Promise<Store>,
  exam: EqualLevelsExam = {},
): void {
  const { without = [], options = {} } = exam
  const own = { outage: 'closed', timeout: 60_000, ...options } as const

  test(`${name}: levels of one name in two named wholes are two budgets`, async () => {
    const store = await storeOf([whole('requests'), whole('tokens')])
    const make = (policy: Policy, more: Omit<SharedOptions, 'store'> = {}): SharedLimiter =>
      createLimiter(policy, { ...own, ...more, store }) as SharedLimiter
    const [requests, tokens] = [make(whole('requests')), make(whole('tokens'))]
    const made = [requests, tokens]
    const passes = async (limiter: SharedLimiter, cost: number): Promise<boolean> => (await limiter.take(KEYS, cost)).allowed
    try {
      assert.deepEqual([await passes(requests, 4_000), await passes(tokens, 4_000)], [true, true])
      const denied = await requests.take(KEYS, 4_000)
      assert.deepEqual([denied.allowed, denied.policy, denied.parts?.map(({ policy }) => policy)], [false, 'user', ['org', 'user']])

      assert.equal((await requests.block(KEYS, '1h')).allowed, false)
      assert.deepEqual([await passes(requests, 1), await passes(tokens, 100)], [false, true], 'a ban')
      await requests.reset(KEYS)
      assert.deepEqual([await passes(requests, 4_000), await passes(tokens, 4_000)], [true, false], 'a reset')
      if (without.includes('more')) return

      await requests.refund(KEYS, 1_000)
      assert.deepEqual([await passes(requests, 2_500), await passes(tokens, 2_500)], [true, false], 'a refund')
      await requests.penalize(KEYS, 400)
      assert.deepEqual([await passes(requests, 1_000), await passes(tokens, 1_000)], [false, true], 'a penalty')
      await requests.reset(KEYS)
      await tokens.reset(KEYS)

      const works = await Promise.all(made.map((limiter) => limiter.open(KEYS, { expect: 4_000 })))
      assert.deepEqual(
        works.map(({ allowed }) => allowed),
        [true, true],
        'a hold',
      )
      assert.equal((await requests.open(KEYS, { expect: 4_000 })).allowed, false)
      await Promise.all(works.map((work) => work.close(0)))
      if (!without.includes('byId')) {
        const opened = await Promise.all(made.map((limiter) => limiter.byId?.open(IN_ORDER, ID, { expect: 4_000 })))
        assert.deepEqual(
          opened.map((answer) => answer?.isDone),
          [true, true],
        )
        await requests.byId?.add(IN_ORDER, ID, 70, 1)
        const [one, other] = await Promise.all(made.map((limiter) => limiter.byId?.close(IN_ORDER, ID)))
        assert.deepEqual([one?.used, other?.used], [70, 0], 'work of one id')
      }
      assert.deepEqual([await passes(requests, 4_000), await passes(tokens, 4_000)], [true, true])
      if (!without.includes('update')) {
        requests.update(whole('renamed', 9_000))
        assert.deepEqual([await passes(requests, 6_000), await passes(requests, 3_000), await passes(tokens, 3_000)], [false, true, false])
      }
      if (!without.includes('newcomer')) {
        const deployed = make(whole('requests', 7_000))
        made.push(deployed)
        assert.equal(await passes(deployed, 4_000), false, 'another limit of a level keeps what was spent')
      }
      if (!without.includes('plans')) {
        const planned = make(whole('requests'), { policyFor: { user: () => fixedWindow({ limit: 9_500, window: '30d' }) } })
        made.push(planned)
        assert.equal(await passes(planned, 4_000), false, 'a plan has the account of its level')
        assert.equal((await planned.take({ org: 'acme', user: 'eve' }, 6_400)).allowed, true)
      }
    } finally {
      for (const limiter of made) limiter.close()
    }
  })

  if (without.includes('unnamed')) return
  test(`${name}: levels of one name in two wholes without names are one budget, whatever their number`, async () => {
    const store = await storeOf([whole()])
    const more = levels({ user: fixedWindow({ limit: 6_000, window: '30d' }) })
    using one = createLimiter(whole(), { ...own, store }) as SharedLimiter
    using other = createLimiter(more, { ...own, store }) as SharedLimiter
    assert.equal((await one.take(KEYS, 4_000)).allowed, true)
    assert.equal((await other.take(KEYS.user, 4_000)).allowed, false)
  })
}
