import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { freshLease, grantOf, MS, OF_A_WINDOW } from 'sluicegate-testkit/leases/lease-records.js'
import { ManualAuthority } from 'sluicegate-testkit/leases/manual-authority.js'
import { turns } from 'sluicegate-testkit/turns.js'
import { fixedWindow, manualClock, type Policy, slidingLog, slidingWindow, tokenBucket } from '../../index.js'
import { type Backend, isGranted } from '../backend.js'
import { LeaseReturns } from './lease-table.js'
import type { LeasedTakes } from './leased-takes.js'

const WINDOWS: readonly Policy[] = [
  fixedWindow({ limit: 100, window: '1h' }),
  fixedWindow({ limit: 1000, window: '1h' }),
  slidingWindow({ limit: 100, window: '1h' }),
  slidingWindow({ limit: 1000, window: '1h' }),
]
const LOG = slidingLog({ limit: 200, window: '1h' })
const BUCKET = tokenBucket({ limit: 500, window: '1s', burst: 1000 })
const LEASE_MS = 100

/** Takes at once, enough that the process leases ahead. */
const DENSE = 40

async function spent(takes: LeasedTakes, times: number): Promise<number> {
  let count = 0
  for (let i = 0; i < times; i++) if ((await takes.take('k', 1)).allowed) count++
  return count
}

for (const policy of WINDOWS) {
  test(`I2 ${policy.name}: what many processes leave of their leases is there for another, in the same window`, async () => {
    const authority = new ManualAuthority({ policy, processes: 21 })
    let count = 0
    for (const takes of authority.fleet.slice(1)) count += await spent(takes, policy.limit / 25)
    await turns()
    authority.clock.advance(LEASE_MS)
    await turns()
    count += await spent(authority.takes, policy.limit)
    assert.ok(count >= 0.95 * policy.limit && count <= policy.limit, `${count} of ${policy.limit}`)
  })
}

for (const policy of [...WINDOWS, LOG, BUCKET]) {
  test(`${policy.name}: a process that hears of nothing lets nothing pass a lease after a block elsewhere`, async () => {
    const authority = new ManualAuthority({ policy })
    assert.ok((await spent(authority.takes, 40)) > 0)
    authority.isBlocked = true
    authority.clock.advance(LEASE_MS)
    assert.equal(await spent(authority.takes, 40), 0)
  })
}

/** A process that holds a part of a lease; `count` tokens were spent. */
async function holding(policy: Policy): Promise<{ authority: ManualAuthority; count: number }> {
  const authority = new ManualAuthority({ policy })
  let count = await spent(authority.takes, DENSE)
  while (authority.lent === count && count < 2 * DENSE) count += await spent(authority.takes, 1)
  await turns()
  return { authority, count }
}

test('what is closed gives back all that it holds, and what is still on its way to it', async () => {
  for (const policy of [...WINDOWS, LOG]) {
    const { authority, count } = await holding(policy)
    authority.isHeld = true
    const late = authority.take('k', 19)
    await turns()
    authority.isHeld = false
    authority.takes.close()
    for (const message of authority.asked.splice(0)) message.answer()
    const { allowed } = await late
    authority.clock.advance(0)
    await turns()
    const used = count + (allowed ? 19 : 0)
    assert.ok(authority.broughtBack > 0)
    assert.ok(authority.takeElsewhere('k', policy.limit - used), `${policy.name}: ${authority.broughtBack} came back`)
    assert.ok(!authority.takeElsewhere('k', 1))
  }
})

test('a log gets tokens back, also after a take, unless a later lease followed: then they stay charged', async () => {
  for (const next of ['nothing', 'a take', 'a lease']) {
    const authority = new ManualAuthority({ policy: LOG, processes: 2 })
    await authority.take('k', 1)
    const takes = authority.fleet[1] as LeasedTakes
    assert.equal(await spent(takes, 8), 8)
    await turns()
    const { lent } = authority
    assert.ok(lent > 9)
    authority.clock.advance(1)
    if (next === 'a take') assert.ok(authority.takeElsewhere('k', 1))
    if (next === 'a lease') await Promise.all([authority.take('k', 1), authority.take('k', 1)])
    const later = authority.lent - lent
    authority.clock.advance(LEASE_MS)
    await turns()
    assert.ok(authority.returns > 0)
    assert.equal(later > 0, next === 'a lease')
    const free = { nothing: 191, 'a take': 190, 'a lease': 189 - (lent - 9) }[next] as number
    assert.ok(!authority.takeElsewhere('k', free + 1))
    assert.ok(authority.takeElsewhere('k', free))
  }
})

test('a return that is lost loses what it would have brought, and nothing else', async () => {
  const policy = fixedWindow({ limit: 100, window: '1h' })
  const authority = new ManualAuthority({ policy, processes: 2 })
  const count = await spent(authority.takes, DENSE)
  await turns()
  const held = authority.lent - count
  assert.ok(held > 0)
  authority.isHeld = true
  authority.clock.advance(LEASE_MS)
  assert.equal(authority.asked.length, authority.returns)
  for (const message of authority.asked.splice(0)) message.lose()
  authority.isHeld = false
  assert.equal(await spent(authority.fleet[1] as LeasedTakes, 200), 100 - count - held)
})

test('a key that was changed by hand here gives back all that it holds, and what is still on its way to it', async () => {
  for (const policy of [...WINDOWS, LOG]) {
    const { authority, count } = await holding(policy)
    const held = authority.lent - count
    assert.ok(held > 0, `${policy.name}: ${held}`)
    authority.isHeld = true
    const late = authority.take('k', held + 9)
    await turns()
    assert.equal(authority.asked.length, 1)
    authority.takes.forget('k', 'returned')
    authority.clock.advance(1)
    authority.isHeld = false
    // Of a log it comes back if it is there before the lease that was asked for meanwhile.
    for (const message of authority.asked.splice(0).reverse()) message.answer()
    await turns()
    assert.equal((await late).allowed, true)
    authority.takes.close()
    await turns()
    assert.ok(authority.takeElsewhere('k', policy.limit - count - held - 9), `${policy.name}: ${authority.broughtBack} came back`)
    assert.ok(!authority.takeElsewhere('k', 1))
  }
})

test('a key that was reset here returns nothing: the backend has forgotten its leases', async () => {
  const authority = new ManualAuthority({ policy: fixedWindow({ limit: 100, window: '1h' }) })
  await spent(authority.takes, 9)
  await turns()
  authority.takes.forget('k', 'dropped')
  authority.clock.advance(LEASE_MS)
  await turns()
  assert.equal(authority.returns, 0)
})

test('a hot key hardly gives anything back: it spends what it fetches', async () => {
  for (const policy of [fixedWindow({ limit: 1_000_000, window: '1h' }), slidingWindow({ limit: 1_000_000, window: '1h' })]) {
    const authority = new ManualAuthority({ policy, delayMs: 1 })
    let pending = 0
    for (let ms = 0; ms < 5000; ms++) {
      for (let i = 0; i < 5; i++) {
        const answer = authority.takes.take('k', 1)
        if (answer instanceof Promise) pending++
      }
      authority.clock.advance(1)
      await turns()
    }
    const calls = authority.leases + authority.returns + authority.atOnce
    assert.ok(calls <= 0.01 * 25_000 && authority.returns <= 10, `${calls} calls, ${authority.returns} of them returns; ${pending} waited`)
  }
})

test('mixed costs on a key that denies ask the authority about twenty times a second, whatever the mix', async () => {
  for (const policy of [slidingLog({ limit: 200, window: '4s' }), slidingWindow({ limit: 200, window: '4s' })]) {
    const authority = new ManualAuthority({ policy })
    const random = new Random(7)
    for (let i = 0; i < 400; i++) await authority.take('k', 1)
    const before = authority.leases + authority.atOnce + authority.returns
    for (let ms = 0; ms < 10_000; ms += 2) {
      for (let i = 0; i < 5; i++) await authority.take('k', random.integer(1, 7))
      authority.clock.advance(2)
    }
    const calls = authority.leases + authority.atOnce + authority.returns - before
    assert.ok(calls <= 25 * 10, `${policy.name}: ${calls} calls in 10 s`)
  }
})

test('tokens that expire before those of an earlier grant are spent first, and what is left of them is returned at their end', async () => {
  const clock = manualClock()
  const returned: unknown[] = []
  const backend: Backend = {
    lease: () => Promise.reject(new Error('nothing is leased')),
    execute: async (operation) => {
      returned.push(operation.verb === 'giveBack' && isGranted(operation.charge) && [operation.charge.grantId, operation.tokens])
      return { done: true }
    },
  }
  const returns = new LeaseReturns({ backend, part: 0, clock })
  const lease = freshLease()
  for (const [id, endUs] of [
    [1, 4000 * MS],
    [2, 100 * MS],
  ] as const) {
    lease.demand.request(3)
    lease.addGrant(grantOf({ ...OF_A_WINDOW, tokens: 3, endUs, id }), lease.want(0), 0)
    returns.watch(lease, 'k')
  }
  assert.ok(lease.spend(0, 1))
  clock.advance(100)
  await turns()
  assert.deepEqual(returned, [[2, 2]])
  clock.advance(4000)
  await turns()
  assert.deepEqual(returned, [
    [2, 2],
    [1, 3],
  ])
})
