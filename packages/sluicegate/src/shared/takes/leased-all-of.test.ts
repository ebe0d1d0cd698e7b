import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Admission, firstOver, Random, shortOrLong, specOf } from 'sluicegate-testkit'
import { ManualAuthority } from 'sluicegate-testkit/leases/manual-authority.js'
import { turns } from 'sluicegate-testkit/turns.js'
import { allOf, type Decision, fixedWindow, slidingLog, tokenBucket } from '../../index.js'

/** Of the user nine at once, and one every 100 ms; of the tenant 950 at once, and 50 every 100 ms. */
const USER = tokenBucket({ limit: 10, window: '1s', burst: 10, name: 'user' })
const TENANT = tokenBucket({ limit: 500, window: '1s', burst: 1000, name: 'tenant' })
const BOTH = allOf([USER, TENANT])
const KEYS = ['u', 't'] as const

function partsOf(decision: Decision): unknown[] {
  return (decision.parts ?? []).map(({ allowed, policy, retryAfterMs }) => [policy, allowed, retryAfterMs])
}

test('each policy is leased apart, by its own key, and takes come from both', async () => {
  const authority = new ManualAuthority({ policy: BOTH })
  const [first] = await Promise.all([authority.take(KEYS, 1), authority.take(KEYS, 1)])
  assert.deepEqual([first.allowed, first.source, first.policy, authority.leases, authority.atOnce], [true, 'lease', 'user', 2, 0])
  assert.deepEqual(partsOf(first), [
    ['user', true, 0],
    ['tenant', true, 0],
  ])
  await Promise.all([authority.take(['v', 't']), authority.take(['w', 't'])])
  assert.equal(authority.takeElsewhere('u', 8, 0), false)
  assert.equal(authority.takeElsewhere('u', 7, 0), true, 'as many tokens as were asked for were lent')
  assert.equal(authority.takeElsewhere('v', 8, 0), true, 'another user is another key')
})

test('when one policy denies nothing is spent of the other, and the strictest says when', async () => {
  const authority = new ManualAuthority({ policy: BOTH })
  assert.ok(authority.takeElsewhere('u', 9, 0))
  assert.equal((await authority.take(KEYS)).allowed, true)
  const held = authority.lent
  const denied = await authority.take(KEYS)
  assert.deepEqual([denied.allowed, denied.policy, denied.retryAfterMs], [false, 'user', 100])
  assert.deepEqual(partsOf(denied)[1], ['tenant', true, 0])
  assert.ok(authority.lent - held <= 2, `${authority.lent - held} tokens were lent for nothing`)
  const both = authority.takes.take(KEYS, 1)
  assert.ok(!(both instanceof Promise) && !both.allowed)
  await authority.take(['v', 't'], 3)
  const strictest = await authority.take(['v', 't'], 8)
  assert.equal(strictest.allowed, false)
  assert.equal(strictest.retryAfterMs, Math.max(...(strictest.parts ?? []).map(({ retryAfterMs }) => retryAfterMs)))
})

test('a denial costs nothing of what is held: as much is left as before, of each policy', async () => {
  const authority = new ManualAuthority({ policy: allOf([fixedWindow({ limit: 20, window: '1h', name: 'few' }), TENANT]) })
  await Promise.all(Array.from({ length: 20 }, () => authority.take(KEYS)))
  await Promise.all([1, 2, 3, 4].map(() => authority.take(['another', 't'])))
  await Promise.all([1, 2, 3, 4].map(() => authority.take(['another', 't'])))
  const leftOf = ({ parts = [] }: Decision): number[] => parts.map(({ remaining }) => remaining)
  const before = leftOf(await authority.take(KEYS))
  for (let i = 0; i < 100; i++) {
    const denied = await authority.take(KEYS)
    assert.equal(denied.allowed, false)
    assert.deepEqual(leftOf(denied), before)
  }
  let passed = 8
  while ((await authority.take(['another', 't'])).allowed) passed++
  assert.equal(passed, 20)
})

test('who is denied by his own policy, however often he asks, takes nothing from the one that he shares with others', async () => {
  const authority = new ManualAuthority({ policy: BOTH })
  for (let ms = 0; ms < 5000; ms++) {
    for (let i = 0; i < 5; i++) await authority.take(KEYS)
    authority.clock.advance(1)
  }
  // 58 passed; of each policy a little more was lent than that.
  assert.ok(authority.lent >= 2 * 58 && authority.lent <= 150, `${authority.lent}`)
})

test('continuous takes get the budget of the tighter policy, at any cost, on one server or several', async () => {
  for (const isApart of [false, true]) {
    for (const cost of [9, 1, 2, 3, 5].slice(0, shortOrLong(1, 5))) {
      const authority = new ManualAuthority({ policy: BOTH, isApart })
      let spent = 0
      for (let ms = 0; ms < 20_000; ms += 2) {
        if ((await authority.take(KEYS, cost)).allowed) spent += cost
        authority.clock.advance(2)
      }
      assert.ok(spent > 209 - 2 * cost - 4 && spent <= 210, `${spent} of 209 at cost ${cost}`)
    }
  }
})

test('the time after which to try again is exact as far as it is known: then it passes, a millisecond before it does not', async () => {
  for (let seed = 1; seed <= shortOrLong(15, 40); seed++) {
    const random = new Random(seed)
    const second = random.pick([TENANT, slidingLog({ limit: 20, window: '3s' })])
    const authority = new ManualAuthority({
      policy: allOf(
        random.pick([
          [USER, second],
          [second, USER],
        ]),
      ),
      isApart: random.chance(0.5),
    })
    const cost = random.pick([1, 1, 2, 5])
    let denied = await authority.take('k', cost)
    while (denied.allowed) {
      authority.clock.advance(random.chance(0.1) ? random.integer(1, 40) : 0)
      denied = await authority.take('k', cost)
    }
    // A policy that was not looked at, as another denied, may have more to say.
    for (let tries = 0; tries < 3; tries++) {
      authority.clock.advance(denied.retryAfterMs - 1)
      if (denied.retryAfterMs > 1) assert.equal((await authority.take('k', cost)).allowed, false, `seed ${seed}, 1 ms early`)
      authority.clock.advance(1)
      denied = await authority.take('k', cost)
      if (denied.allowed) break
    }
    assert.equal(denied.allowed, true, `seed ${seed}`)
  }
})

test('I1: processes that take of several keys are never over any of the policies, on one server or several', async () => {
  const policy = allOf([USER, fixedWindow({ limit: 40, window: '2s', name: 'team' }), TENANT])
  for (let seed = 1; seed <= shortOrLong(4, 12); seed++) {
    const random = new Random(seed)
    const authority = new ManualAuthority({
      policy,
      processes: 3,
      delayMs: random.pick([0, 3, 30]),
      isApart: seed % 2 === 0,
      seed,
      maxKeys: 2,
    })
    const spent = new Map<string, Admission[]>()
    const takes: Promise<void>[] = []
    const taken = async (process: number, keys: readonly string[], cost: number): Promise<void> => {
      const decision = await (authority.fleet[process] as (typeof authority.fleet)[0]).take(keys, cost)
      if (!decision.allowed) return
      const atUs = authority.timeOf(decision)
      for (const [part, key] of keys.entries()) {
        const name = `${part} ${key}`
        spent.set(name, [...(spent.get(name) ?? []), { atUs, cost }])
      }
    }
    for (let i = 0; i < 300; i++) {
      const keys = [random.pick(['a', 'b', 'c']), random.pick(['x', 'y']), 'all']
      takes.push(taken(random.integer(0, 2), keys, random.pick([1, 1, 2, 6])))
      if (random.chance(0.3)) await turns()
      authority.clock.advance(random.pick([0, 0, 1, 5, 60]))
    }
    for (let i = 0; i < 2000; i++) {
      authority.clock.advance(1)
      await turns()
    }
    await Promise.all(takes)
    assert.ok(spent.size === 6)
    for (const [name, admissions] of spent) {
      const part = policy.policies[Number(name[0])] as (typeof policy.policies)[0]
      admissions.sort((a, b) => a.atUs - b.atUs)
      assert.equal(firstOver(specOf(part), admissions), undefined, `seed ${seed}, ${name}`)
    }
  }
})

test('a cost that can never pass under one of them charges nothing', async () => {
  for (const isApart of [false, true]) {
    const authority = new ManualAuthority({ policy: BOTH, isApart })
    assert.equal((await authority.take(KEYS, 11)).allowed, false)
    assert.deepEqual([authority.leases, authority.lent], [0, 0])
    assert.ok(authority.takeElsewhere('u', 10, 0) && authority.takeElsewhere('t', 950, 1))
  }
})

test('a cost above what a lease may hold passes where one call charges both, and never where none can', async () => {
  for (const isApart of [false, true]) {
    const authority = new ManualAuthority({ policy: BOTH, isApart })
    const { allowed, retryAfterMs } = await authority.take(KEYS, 10)
    assert.deepEqual([allowed, retryAfterMs], isApart ? [false, Number.POSITIVE_INFINITY] : [true, 0])
  }
})

test('without room for another key a take is one call, or leases of its own where no call can charge all', async () => {
  for (const isApart of [false, true]) {
    const authority = new ManualAuthority({ policy: BOTH, isApart, maxKeys: 1 })
    authority.isHeld = true
    const known = [1, 2].map(() => authority.take(['known', 'known']))
    await turns()
    authority.isHeld = false
    const { atOnce } = authority
    assert.equal((await authority.take(['new', 'other'], 4)).allowed, true)
    assert.equal((await authority.take(['new', 'other'], 7)).allowed, false)
    assert.equal(authority.atOnce - atOnce, isApart ? 0 : 2)
    assert.ok(authority.takes.size <= 2)
    for (const message of authority.asked.splice(0)) message.answer()
    await Promise.all(known)
    // A token stays back where the four were leased.
    assert.ok(authority.takeElsewhere('new', isApart ? 5 : 6, 0) && !authority.takeElsewhere('new', 1, 0))
  }
})

test('while the store is out only what is in hand of all of them is spent, and nothing of one alone', async () => {
  const authority = new ManualAuthority({ policy: BOTH })
  await Promise.all(['u', 'v', 'w'].map((user) => authority.take([user, 't'], 2)))
  await Promise.all(['u', 'u', 'u'].map((user) => authority.take([user, 't'], 1)))
  await authority.take(KEYS)
  authority.isOut = true
  const decisions = await Promise.all(Array.from({ length: 30 }, () => authority.take(KEYS)))
  assert.ok(decisions.every(({ allowed, source }) => allowed === (source === 'lease')))
  const stranger = await authority.take(['stranger', 't'])
  assert.deepEqual([stranger.allowed, stranger.source], [false, 'outage'])
})

test('one request is in flight for a key of a policy, and a caller waits for all that it lacks', async () => {
  const authority = new ManualAuthority({ policy: BOTH })
  authority.isHeld = true
  const taken = ['u', 'u', 'v', 'v'].map((user) => authority.take([user, 't']))
  await turns()
  assert.deepEqual(authority.asked.map(({ key, want }) => `${key} ${want}`).sort(), ['t 4', 'u 2', 'v 2'])
  const tenant = authority.asked.findIndex(({ key }) => key === 't')
  authority.asked.splice(tenant, 1)[0]?.answer()
  await turns()
  assert.equal(authority.asked.length, 2)
  for (const message of authority.asked.splice(0)) message.answer()
  assert.ok((await Promise.all(taken)).every(({ allowed, source }) => allowed && source === 'lease'))
})

test('when keys were changed by hand nothing that is held of either is spent', async () => {
  const authority = new ManualAuthority({ policy: BOTH })
  for (let i = 0; i < 3; i++) await Promise.all([authority.take(KEYS), authority.take(KEYS)])
  const before = authority.leases + authority.atOnce
  authority.takes.forget(KEYS)
  authority.clock.advance(1)
  assert.ok(authority.takes.take(KEYS, 1) instanceof Promise)
  await turns()
  assert.ok(authority.leases + authority.atOnce > before)
})
