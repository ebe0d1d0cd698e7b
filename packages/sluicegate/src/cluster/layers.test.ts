import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelPair, clockOfTurns, START_MS } from 'sluicegate-testkit/cluster/channel-pair.js'
import { banSuite } from 'sluicegate-testkit/suites/ban-suite.js'
import { layerSuite } from 'sluicegate-testkit/suites/layer-suite.js'
import { listAndShadowSuite } from 'sluicegate-testkit/suites/list-and-shadow-suite.js'
import { overrideSuite, STALE_MS } from 'sluicegate-testkit/suites/override-suite.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, type Policy, slidingLog } from '../index.js'
import type { SharedLimiter } from '../shared/shared-limiter.js'
import { manualClock } from '../time/clock.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

const running = clockOfTurns()

for (const mode of ['exact', 'leased'] as const) {
  for (const suite of [layerSuite, listAndShadowSuite])
    suite({
      name: `node:cluster, ${mode}`,
      make: (policy, options, served = [policy]) => {
        // What is leased and not spent comes back as time goes by.
        const clock = mode === 'leased' ? running : manualClock(START_MS)
        const { worker, parent } = channelPair()
        for (const each of served) serveLimiter(each, { clock, mode }).serve(worker)
        return createLimiter(policy, { store: primary({ process: parent }), clock, outage: 'closed', ...options })
      },
    })
}

test('a tier whose name another limiter has leaves nothing open', async () => {
  const { worker, parent } = channelPair()
  const clock = manualClock(START_MS)
  const [own, one, taken] = ['own', 'one', 'taken'].map((name) => fixedWindow({ limit: 3, window: '1d', name })) as [Policy, Policy, Policy]
  for (const policy of [own, one, taken]) serveLimiter(policy, { clock }).serve(worker)
  using other = createLimiter(taken, { store: primary({ process: parent }), clock })
  const make = (): SharedLimiter =>
    createLimiter(own, { store: primary({ process: parent }), clock, policyFor: () => one, policies: [one, taken] })
  assert.throws(make, { name: 'PolicyError', code: 'NAME_INVALID' })
  other.close()
  // The names are free again.
  using limiter = make()
  assert.equal((await limiter.take('k')).policy, 'one')
})

test('a policy that the primary changed is found by its name, before and after the worker hears of it', async () => {
  const { worker, parent } = channelPair()
  const clock = manualClock(START_MS)
  const plan = (name: string, limit: number): Policy => fixedWindow({ limit, window: '1d', name })
  const [own, pro] = [serveLimiter(plan('own', 10), { clock, mode: 'exact' }), serveLimiter(plan('pro', 50), { clock, mode: 'exact' })]
  for (const served of [own, pro]) served.serve(worker)
  for (const policies of [undefined, [plan('pro', 50)]]) {
    let limit = 10
    using limiter = createLimiter(plan('own', 10), {
      store: primary({ process: parent }),
      clock,
      policyFor: (key) => (key === 'p' ? plan('pro', limit * 5) : plan('own', limit)),
      ...(policies && { policies }),
    })
    for (limit of [10, 20, 40]) {
      // As the worker's own table has it already.
      for (const [key, most] of [
        ['k', limit],
        ['p', limit * 5],
      ] as const)
        await limiter.take(key, most / 10)
      own.update(plan('own', limit))
      pro.update(plan('pro', limit * 5))
      const [k, p] = [await limiter.peek('k'), await limiter.peek('p')]
      assert.deepEqual([k.limit, p.limit], [limit, limit * 5])
    }
    await limiter.reset('k')
    await limiter.reset('p')
  }
  using wrong = createLimiter(plan('own', 10), {
    store: primary({ process: parent }),
    clock,
    policyFor: () => slidingLog({ limit: 5, window: '1d', name: 'own' }),
  })
  assert.throws(() => wrong.take('k'), { name: 'PolicyError', code: 'ALGORITHM_CHANGE' })
})

banSuite({
  name: 'node:cluster',
  make: (policy, banAfter, more = {}) => {
    const clock = manualClock(START_MS)
    const pairs = [channelPair(), channelPair()]
    // That of the state stands still: as with a server, only bans are timed by the clock of the test.
    const served = serveLimiter(policy, { clock: manualClock(START_MS) })
    for (const { worker } of pairs) served.serve(worker)
    const [one, other] = pairs.map(({ parent }) =>
      createLimiter(policy, { store: primary({ process: parent }), clock, outage: 'closed', banAfter, ...more }),
    )
    return { one, other, clock } as never
  },
})

for (const mode of ['exact', 'leased'] as const) {
  overrideSuite({
    name: `node:cluster, ${mode}`,
    isLeased: mode === 'leased',
    make: (policy, options = {}) => {
      const clock = manualClock(START_MS)
      const pairs = [channelPair(), channelPair()]
      const served = serveLimiter(policy, { clock, mode, overrides: true })
      const { policyFor } = options
      const tier = typeof policyFor === 'function' ? policyFor('any') : undefined
      const others = tier === undefined ? [] : [serveLimiter(tier, { clock, mode })]
      for (const { worker } of pairs) for (const each of [served, ...others]) each.serve(worker)
      const [one, other] = pairs.map(({ parent }) =>
        createLimiter(policy, {
          store: primary({ process: parent }),
          clock,
          outage: 'closed',
          overrides: { maxAge: STALE_MS },
          ...options,
        }),
      )
      return { one, other, clock } as never
    },
  })
}

const OWN = fixedWindow({ limit: 30, window: '365d', name: 'own' })
const PRO = fixedWindow({ limit: 60, window: '365d', name: 'pro' })

test('the primary sets overrides for workers that come later, too', async () => {
  const clock = manualClock(START_MS)
  const served = serveLimiter(OWN, { clock, overrides: true })
  served.overrides.set('acme', PRO)
  const { worker, parent } = channelPair()
  served.serve(worker)
  using limiter = createLimiter(OWN, { store: primary({ process: parent }), clock, outage: 'closed', overrides: true })
  assert.deepEqual([(await limiter.take('acme')).policy, (await limiter.take('else')).policy], ['pro', 'own'])
})

test('a primary that keeps no overrides says so to those who set one, and takes go on without', async () => {
  const clock = manualClock(START_MS)
  const { worker, parent } = channelPair()
  serveLimiter(OWN, { clock }).serve(worker)
  using limiter = createLimiter(OWN, { store: primary({ process: parent }), clock, outage: 'closed', overrides: true })
  assert.equal((await limiter.take('acme')).policy, 'own')
  await assert.rejects(limiter.overrides.set('acme', PRO), { code: 'OUTAGE', message: /give it overrides: true as well/ })
})

test('a process announces the soft limits that it sees reached, as a primary has no policies but its own', async (t) => {
  const { mock } = t.mock.method(process, 'emitWarning', () => undefined)
  const clock = manualClock(START_MS)
  const { worker, parent } = channelPair()
  serveLimiter(OWN, { clock }).serve(worker)
  const seen: string[] = []
  using limiter = createLimiter(OWN, {
    store: primary({ process: parent }),
    clock,
    soft: ['50%'],
    onSoft: ({ policy, key, threshold, used }) => seen.push(`${policy} ${key} ${threshold} ${used}`),
  })
  const taken = [await limiter.take('a', 10), await limiter.take('a', 10), await limiter.take('a', 10)]
  assert.deepEqual(
    taken.map(({ soft }) => soft),
    [undefined, ['own'], ['own']],
  )
  assert.deepEqual([seen, mock.callCount()], [['own a 50% 20'], 0])
})
