import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { ManualAuthority } from 'sluicegate-testkit/leases/manual-authority.js'
import { turns } from 'sluicegate-testkit/turns.js'
import type { Decision } from '../../decision/decision.js'
import { fixedWindow, slidingLog, tokenBucket } from '../../index.js'
import { CachedDenial } from '../../lease/denial-cache.js'
import { LateAnswers } from './late-answers.js'

/** A lease of 100 ms leaves 50 tokens of the burst to takes at the backend. */
const BUCKET = tokenBucket({ limit: 500, window: '1s', burst: 1000 })
/** Ten at once, of them nine by leases, and one every 100 ms. */
const SLOW = tokenBucket({ limit: 10, window: '1s', burst: 10 })

test('one request is in flight for a key, however many ask, and the others look again when it is answered', async () => {
  const authority = new ManualAuthority({ policy: BUCKET })
  authority.isHeld = true
  const first = authority.take('k')
  await turns()
  const more = Array.from({ length: 300 }, () => authority.take('k'))
  await turns()
  assert.deepEqual(
    authority.asked.map(({ key, want }) => [key, want]),
    [
      ['k', 1],
      ['k', 300],
    ],
    'the first alone, and the others, which do not wait for it, together',
  )
  const last = authority.take('k')
  await turns()
  assert.equal(authority.asked.length, 2, 'a lease is on its way')
  for (const message of authority.asked.splice(0)) message.answer()
  await turns()
  for (const message of authority.asked.splice(0)) message.answer()
  const decisions = await Promise.all([first, ...more, last])
  assert.ok(decisions.every(({ allowed }) => allowed))
  assert.equal(authority.leases, 2, 'the last finds nothing left')
})

test('keys are asked for apart', async () => {
  const authority = new ManualAuthority({ policy: BUCKET })
  await Promise.all(['a', 'b', 'a'].map((key) => authority.take(key)))
  assert.deepEqual([authority.leases, authority.atOnce], [1, 1])
})

test('many keys, each asked for every 26 ms, do not push each other out', async () => {
  const authority = new ManualAuthority({ policy: BUCKET })
  const keys = Array.from({ length: 256 }, (_, i) => `user ${i}`)
  let takes = 0
  for (let ms = 0; ms < shortOrLong(800, 2000); ms++) {
    for (let i = 0; i < 10; i++) assert.ok((await authority.take(keys[takes++ % keys.length] as string)).allowed)
    authority.clock.advance(1)
  }
  assert.ok(authority.leases < takes * 0.8, `${authority.leases} calls for ${takes} takes`)
  authority.clock.advance(1000)
  for (let i = 0; i < 200; i++) await authority.take(`another ${i}`)
  assert.ok(authority.takes.size <= 200, 'unused keys are forgotten')
})

test('waiting takes use a denial that arrived for another take, and do not stampede', async () => {
  const authority = new ManualAuthority({ policy: SLOW })
  assert.ok(authority.takeElsewhere('k', 10))
  authority.isHeld = true
  const waiting = Array.from({ length: 500 }, () => authority.take('k'))
  await turns()
  authority.asked.shift()?.answer()
  const decisions = await Promise.all(waiting)
  assert.ok(decisions.every(({ allowed, retryAfterMs }) => !allowed && retryAfterMs === 100))
  assert.deepEqual([authority.leases, authority.atOnce, authority.asked.length], [1, 0, 0])
  const known = authority.takes.take('k', 1)
  assert.ok(!(known instanceof Promise) && !known.allowed, 'later takes are denied at once')
})

test('a larger cost waits for its turn as others do, and is not torn to pieces that are of no use', async () => {
  const authority = new ManualAuthority({ policy: SLOW })
  assert.ok(authority.takeElsewhere('k', 5))
  const denied = await authority.take('k', 6)
  assert.deepEqual([denied.allowed, denied.retryAfterMs], [false, 100])
  assert.ok(authority.takeElsewhere('k', 5), 'what was there is there for others')
})

test('callers of a larger cost share a request, and a denial', async () => {
  const authority = new ManualAuthority({ policy: SLOW })
  const decisions = await Promise.all(Array.from({ length: 100 }, () => authority.take('k', 4)))
  assert.equal(decisions.filter(({ allowed }) => allowed).length, 2)
  assert.ok(authority.leases + authority.atOnce <= 3, `${authority.leases} leases and ${authority.atOnce} calls`)
})

test('continuous takes get the budget, at any cost, from one process', async () => {
  for (const cost of [9, 1, 2, 3, 5].slice(0, shortOrLong(2, 5))) {
    const authority = new ManualAuthority({ policy: SLOW })
    let spent = 0
    for (let ms = 0; ms < 20_000; ms += 2) {
      const decision = authority.takes.take('k', cost)
      if ((await decision).allowed) spent += cost
      authority.clock.advance(2)
    }
    assert.ok(spent > 209 - 2 * cost - 4 && spent <= 210, `${spent} of 209 at cost ${cost}`)
  }
})

test('a take of the largest cost is not starved by the refills of its own process', async () => {
  const authority = new ManualAuthority({ policy: SLOW })
  const passedAtMs: number[] = []
  for (let ms = 0; ms < 5000; ms++) {
    if ((await authority.take('k', 9)).allowed) passedAtMs.push(ms)
    authority.clock.advance(1)
  }
  assert.ok(passedAtMs.length >= 5 && passedAtMs.length <= 6, `${passedAtMs}`)
})

test('the time after which to try again is exact: then it passes, a millisecond before it does not', async () => {
  for (let seed = 1; seed <= shortOrLong(12, 40); seed++) {
    const random = new Random(seed)
    const authority = new ManualAuthority({ policy: random.pick([SLOW, BUCKET, slidingLog({ limit: 20, window: '3s' })]) })
    const cost = random.pick([1, 1, 2, 5])
    let denied = await authority.take('k', cost)
    while (denied.allowed) {
      authority.clock.advance(random.chance(0.1) ? random.integer(1, 40) : 0)
      denied = await authority.take('k', cost)
    }
    authority.clock.advance(denied.retryAfterMs - 1)
    if (denied.retryAfterMs > 1) assert.equal((await authority.take('k', cost)).allowed, false, `seed ${seed}, 1 ms early`)
    authority.clock.advance(1)
    assert.equal((await authority.take('k', cost)).allowed, true, `seed ${seed}, after ${denied.retryAfterMs} ms`)
  }
})

test('a denied cost beside smaller ones is denied from the cache until it passes', async () => {
  const authority = new ManualAuthority({ policy: slidingLog({ limit: 20, window: '3s' }) })
  assert.ok(authority.takeElsewhere('k', 10))
  authority.clock.advance(1000)
  assert.ok(authority.takeElsewhere('k', 9))
  const [small, large] = await Promise.all([authority.take('k', 1), authority.take('k', 5)])
  assert.deepEqual([small.allowed, large.allowed, authority.leases, authority.atOnce], [true, false, 1, 0])
  const again = authority.takes.take('k', 5)
  assert.ok(!(again instanceof Promise) && !again.allowed && again.source === 'lease')
})

test('a cost that can never pass charges nothing', async () => {
  const authority = new ManualAuthority({ policy: SLOW })
  assert.equal((await authority.take('k', 11)).allowed, false)
  assert.deepEqual([authority.leases, authority.atOnce], [0, 1], 'the authority says so')
  assert.ok(authority.takeElsewhere('k', 10))
})

test('a cost above what a lease may hold is taken at the authority while nothing is leased', async () => {
  const authority = new ManualAuthority({ policy: SLOW })
  assert.equal((await authority.take('k', 10)).allowed, true)
  authority.clock.advance(1000)
  const [{ source }] = await Promise.all([authority.take('k', 1), authority.take('k', 1)])
  assert.equal(source, 'lease')
  assert.equal((await authority.take('k', 10)).allowed, false, 'the lease may still be spent')
  authority.clock.advance(300)
  assert.equal((await authority.take('k', 10)).allowed, true)
  assert.equal(authority.atOnce, 3)
})

test('what the authority decides by itself counts at its time, however late the answer comes', async () => {
  const authority = new ManualAuthority({ policy: SLOW })
  authority.isHeld = true
  const late = authority.take('k', 3)
  await turns()
  authority.clock.advance(150)
  authority.asked.shift()?.answer()
  const { allowed, source } = await late
  assert.deepEqual([allowed, source, authority.atOnce, authority.withoutStore], [true, 'store', 1, 0])
})

test('of a lease that comes too late nothing is spent, and the authority decides each take that waited for it', async () => {
  const authority = new ManualAuthority({ policy: BUCKET })
  authority.isHeld = true
  const [late, other] = [authority.take('k'), authority.take('k')]
  await turns()
  authority.clock.advance(100)
  authority.asked.shift()?.answer()
  await turns()
  const alone = authority.asked.splice(0)
  assert.equal(alone.length, 2)
  authority.clock.advance(100)
  for (const message of alone) message.answer()
  assert.deepEqual([(await late).source, (await other).source], ['store', 'store'])
  assert.deepEqual([authority.leases, authority.atOnce, authority.withoutStore], [1, 2, 0])
})

test('over a network slower than a lease each take becomes a call, and nothing is lost', async () => {
  const authority = new ManualAuthority({ policy: BUCKET, delayMs: 80 })
  const takes: Promise<boolean>[] = []
  for (let ms = 0; ms < 4000; ms++) {
    if (ms % 4 === 0) takes.push(authority.take('k').then(({ allowed }) => allowed))
    authority.clock.advance(1)
    await turns()
  }
  for (let ms = 0; ms < 1000; ms++) {
    authority.clock.advance(1)
    await turns()
  }
  assert.ok((await Promise.all(takes)).every((allowed) => allowed))
  assert.equal(authority.withoutStore, 0)
  assert.equal(authority.atOnce, 1000)
  assert.ok(authority.leases <= 20 && authority.lent < 1100, `${authority.leases} leases in vain, ${authority.lent} tokens`)
})

test('a lease that is lost is asked for no more than once a horizon ahead of need', async () => {
  const authority = new ManualAuthority({ policy: SLOW })
  for (let i = 0; i < 12; i++) await authority.take('k')
  const before = authority.leases
  authority.isHeld = true
  authority.clock.advance(95)
  for (let i = 0; i < 50; i++) {
    void authority.take('k')
    await turns()
    authority.asked.shift()?.lose()
    await turns()
  }
  assert.ok(authority.leases - before <= 2, `${authority.leases - before}`)
})

test('while the store is out only what is in hand is spent', async () => {
  const authority = new ManualAuthority({ policy: BUCKET })
  await Promise.all([1, 2, 3].map(() => authority.take('k')))
  for (let i = 0; i < 20; i++) await authority.take('k')
  authority.isOut = true
  const decisions = await Promise.all(Array.from({ length: 100 }, () => authority.take('k')))
  const sources = new Set(decisions.map(({ source }) => source))
  assert.deepEqual([...sources].sort(), ['lease', 'outage'])
  assert.ok(decisions.every(({ allowed, source }) => allowed === (source === 'lease')))
})

test('I6: any number of keys takes no more memory than there is room for; the others are decided by the store', async () => {
  const authority = new ManualAuthority({ policy: SLOW, maxKeys: 500 })
  const count = shortOrLong(6_000, 20_000)
  for (let i = 0; i < count; i++) {
    const key = `key ${i}`
    // A denial is something to remember, for as long as it holds.
    if (i % 2 === 0) assert.ok(authority.takeElsewhere(key, 10))
    const decision = authority.takes.take(key, 1)
    if (i % 100 === 0) await turns()
    if (i % 5000 === 0) authority.clock.advance(200)
    if (i % 50 === 0) assert.equal((await decision).allowed, i % 2 !== 0)
    assert.ok(authority.takes.size <= 500)
  }
  await turns()
  assert.equal(authority.leases + authority.atOnce, count)
})

describe('cached denials', () => {
  const SEEDS = shortOrLong(6, 20)

  /** Nine at once, and one every 100 ms. */
  const SLOW = tokenBucket({ limit: 10, window: '1s', burst: 10 })

  /** The store's decision about a key after a refund. */
  function afterRefund(remaining: number): Decision {
    return { allowed: remaining > 0, limit: 10, remaining, retryAfterMs: 0, resetAfterMs: 1_000, policy: 'p', source: 'store' }
  }

  test('a cached denial equals the one that would be computed', async (t) => {
    let repeated = 0
    for (let seed = 1; seed <= SEEDS; seed++) {
      const cached = await historyOf(seed)
      const mock = t.mock.method(CachedDenial.prototype, 'at', () => undefined)
      const fresh = await historyOf(seed)
      mock.mock.restore()
      assert.deepEqual(cached.decisions, fresh.decisions, `seed ${seed}`)
      assert.deepEqual([cached.leases, cached.count], [fresh.leases, fresh.count], `seed ${seed}`)
      assert.equal(new Set(fresh.decisions).size, fresh.decisions.length)
      repeated += cached.decisions.length - new Set(cached.decisions).size
    }
    assert.ok(repeated > 100 * SEEDS, `${repeated} were repeated`)

    /** Takes of two keys, many in the same millisecond, while other processes take and verbs change the keys. */
    async function historyOf(seed: number): Promise<{ decisions: readonly Decision[]; leases: number; count: number }> {
      const random = new Random(seed)
      // A token every 1.4 ms: the available tokens change between whole milliseconds.
      const uneven = tokenBucket({ limit: 700, window: '1s', burst: 90 })
      const policy = random.pick([SLOW, uneven, slidingLog({ limit: 20, window: '3s' }), fixedWindow({ limit: 30, window: '2s' })])
      const authority = new ManualAuthority({ policy })
      const decisions: Decision[] = []
      for (let i = 0; i < 1500; i++) {
        const key = random.pick(['a', 'b'])
        if (random.chance(0.5)) authority.clock.advance(random.pick([0.01, 0.3, 0.999, 1, 7.5, 60]))
        if (random.chance(0.02)) authority.takeElsewhere(key, random.integer(1, 5))
        if (random.chance(0.01)) authority.takes.forget(key, random.pick(['returned', 'dropped']))
        if (random.chance(0.005)) authority.takes.refunded(key, afterRefund(random.integer(0, 9)))
        decisions.push(await authority.take(key, random.pick([1, 1, 1, 8])))
      }
      return { decisions, leases: authority.leases, count: authority.takes.decisions }
    }
  })
})

const LEASE_US = 100_000

test('answers that are late for as long as ten leases are warned of, with what to do', () => {
  const warnings: string[] = []
  const late = new LateAnswers('raise it', (message) => warnings.push(message))
  for (let us = 0; us <= 10 * LEASE_US; us += LEASE_US / 2) late.answered(true, us, LEASE_US)
  assert.equal(late.count, 21)
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] as string, /longer than a lease of 100 ms.*raise it/)
})

test('a process that stood still, or an answer in time between, is counted and not warned of', () => {
  const warnings: string[] = []
  const late = new LateAnswers('raise it', (message) => warnings.push(message))
  for (let i = 0; i < 1000; i++) late.answered(true, 5, LEASE_US)
  for (let us = 0; us <= 50 * LEASE_US; us += LEASE_US) {
    late.answered(false, us, LEASE_US)
    late.answered(true, us, LEASE_US)
  }
  assert.deepEqual([late.count, warnings], [1051, []])
})
