import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { attachLimiter, createLimiter, type Decision, fixedWindow, manualClock, slidingLog, slidingWindow, tokenBucket } from 'sluicegate'
import { readConfig } from 'sluicegate-config/read-config.js'
import { Random, shortOrLong } from 'sluicegate-testkit'
import { Engine, type ServedPolicy } from './engine.js'
import type { EngineReservation } from './engine-limiter.js'
import { HeldById, TooManyHeldError } from './held-by-id.js'
import type { Reserved } from './reservations.js'
import { reserveNowOf } from './reserve-now.js'

const WINDOW_MS = 60_000
/** By the keys of a file: which of them has the key `a`. What is spent under the largest is within the debt that the smallest can carry. */
const TIERS = {
  own: { limit: 10, keys: '' },
  pro: { limit: 30, keys: '    keys: { a: pro }\n' },
  low: { limit: 4, keys: '    keys: { "a*": low }\n' },
} as const
type Tier = keyof typeof TIERS
const ALGORITHMS = ['token-bucket', 'fixed-window', 'sliding-log'] as const
const HISTORIES = shortOrLong(40, 100)
const STEPS = 30

function setUp(t: TestContext, algorithm: string, tiers = true) {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-moved-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'sluicegate.yaml')
  const own = `policies:\n  tenant:\n    algorithm: ${algorithm}\n    limit: 10\n    window: 1m\n`
  const read = (tier: Tier, hasTiers = true) => {
    writeFileSync(file, hasTiers ? `${own}    tiers: { pro: { limit: 30 }, low: { limit: 4 } }\n${TIERS[tier].keys}` : own)
    return readConfig(file).policies
  }
  const configs = { own: read('own'), pro: read('pro'), low: read('low'), none: read('own', false) }
  const clock = manualClock(0)
  const engine = new Engine(tiers ? configs.own : configs.none, { clock })
  t.after(() => engine.close())
  const policy = engine.policy('tenant') as ServedPolicy
  return {
    clock,
    use: (tier: keyof typeof configs) => engine.prepare(configs[tier])(),
    take: (cost = 1) => (policy.take('a', cost) as Decision).allowed,
    left: () => (policy.peek('a', 1) as Decision).remaining,
    reserve: (cost: number) => (engine.reservations.reserve([{ policy, key: 'a', cost }], 3_600_000) as Reserved).id,
    settle: (id: string, cost: number) => (engine.reservations.settle(id, cost) as Decision[])[0] as Decision,
  }
}

for (const algorithm of ALGORITHMS) {
  test(`what is committed above the estimate is charged where the key is by then: ${algorithm}`, (t) => {
    const { use, take, left, reserve, settle } = setUp(t, algorithm)
    const id = reserve(4) as string
    use('pro')
    assert.equal(take(), true)
    assert.equal(left(), 25)
    assert.equal(settle(id, 14).remaining, 15, 'the answer is of the tier in which the key is')
    assert.equal(left(), 15)
  })

  test(`what is committed below it comes back where the charge is, also before the key is used in its tier: ${algorithm}`, (t) => {
    const { use, left, reserve, settle } = setUp(t, algorithm)
    const id = reserve(4) as string
    use('pro')
    assert.equal(settle(id, 1).remaining, 29)
    assert.equal(left(), 29)
  })
}

test('a reservation from before its policy had tiers is not given back twice', (t) => {
  const { clock, use, take, left, reserve, settle } = setUp(t, 'token-bucket', false)
  const id = reserve(10) as string
  use('pro')
  assert.equal(left(), 20)
  clock.advance(20_000)
  assert.equal(left(), 30, 'all of it has refilled in the larger tier')
  use('none')
  assert.equal(take(10), true)
  assert.equal(settle(id, 0).remaining, 0)
  assert.equal(take(), false)
})

interface Charge {
  cost: number
  readonly atMs: number
  readonly tier: Tier
}

/** What passed, by what it was settled to in the end; each must pass by this alone. State is in one tier and follows the key when it is next used. */
function excessOf(algorithm: (typeof ALGORITHMS)[number], events: readonly Charge[], settledLate: ReadonlySet<Charge>): string | undefined {
  let debt = 0
  let sinceMs = 0
  const logged: Charge[] = []
  for (const [i, event] of events.entries()) {
    const { cost, atMs, tier } = event
    const { limit } = TIERS[tier]
    // What is beyond the limit of a smaller tier is forgiven there.
    if (events[i - 1]?.tier !== tier && debt > limit) {
      logged.push({ cost: limit - debt, atMs, tier })
      debt = limit
    }
    if (algorithm === 'token-bucket') {
      debt = Math.max(0, debt - ((atMs - sinceMs) * limit) / WINDOW_MS)
      sinceMs = atMs
    } else {
      const isOver = (each: Charge): boolean =>
        algorithm === 'sliding-log' ? each.atMs <= atMs - WINDOW_MS : Math.floor(each.atMs / WINDOW_MS) < Math.floor(atMs / WINDOW_MS)
      debt = logged.filter((each) => !isOver(each)).reduce((sum, each) => sum + each.cost, 0)
    }
    if (cost > 0 && !settledLate.has(event) && debt + cost > limit + 1e-9) return `event ${i}: ${debt} + ${cost} of ${limit} under ${tier}`
    debt += cost
    logged.push(event)
  }
  return undefined
}

for (const algorithm of ALGORITHMS) {
  test(`random moves between reservations and their commits: what passes net is within the tier of the time, ${algorithm}`, (t) => {
    const { clock, use, take, left, reserve, settle } = setUp(t, algorithm)
    let returned = 0
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const random = new Random(seed)
      clock.advance(100 * 3_600_000)
      let tier: Tier = 'own'
      const move = (to: Tier): void => {
        // Used before and after, so that no time passes for what it has spent in another tier than the model's.
        left()
        events.push({ cost: 0, atMs: clock.nowMs(), tier })
        use(to)
        tier = to
        if (random.chance(0.8)) left()
      }
      const events: Charge[] = []
      const above = new Set<Charge>()
      const held: [string, Charge][] = []
      move('own')
      for (let step = 0; step < STEPS; step++) {
        const kind = random.integer(0, 9)
        const cost = random.integer(1, 6)
        const charge: Charge = { cost, atMs: clock.nowMs(), tier }
        if (kind < 2) {
          left()
          clock.advance(random.integer(0, 20_000))
        } else if (kind < 4) move(random.pick(['own', 'pro', 'low'] as const))
        else if (kind < 6) {
          if (take(cost)) events.push(charge)
        } else if (kind < 8) {
          const id = reserve(cost)
          if (id === undefined) continue
          events.push(charge)
          held.push([id, charge])
        } else {
          const [id, of] = held.splice(random.integer(0, held.length - 1), 1)[0] ?? []
          if (id === undefined || of === undefined) continue
          const before = left()
          const actual = random.pick([0, 0, random.integer(0, of.cost), of.cost + 3])
          settle(id, actual)
          returned += Math.max(0, left() - before)
          if (actual > of.cost) {
            const more = { ...charge, cost: actual - of.cost }
            events.push(more)
            above.add(more)
          } else of.cost = actual
        }
      }
      for (let cost = 8; cost >= 1; cost /= 2) while (take(cost)) events.push({ cost, atMs: clock.nowMs(), tier })
      assert.equal(excessOf(algorithm, events, above), undefined, `seed ${seed}`)
    }
    assert.ok(returned > HISTORIES, 'something comes back')
  })
}

for (const maxSettle of [undefined, 3]) {
  test(`settling charges at most ${maxSettle ?? 'ten'} times what was reserved, however much it asks for`, () => {
    const policy = tokenBucket({ limit: 100, window: '1m', name: 'tokens' })
    const engine = new Engine([{ policy, maxKeys: undefined, onFull: 'evict', maxSettle }], { clock: manualClock(0) })
    const served = engine.policy('tokens') as ServedPolicy
    const settled = (cost: number): number => {
      const { id } = engine.reservations.reserve([{ policy: served, key: 'k', cost: 2 }], 60_000) as Reserved
      return 100 - ((engine.reservations.settle(id as string, cost) as Decision[])[0] as Decision).remaining
    }
    const most = 2 * (maxSettle ?? 10)
    assert.equal(settled(most - 1), most - 1)
    assert.equal(settled(1_000_000_000), 2 * most - 1)
    engine.close()
  })
}

const LIMITS = { limit: 3, window: '1h' } as const

for (const policy of [fixedWindow(LIMITS), slidingWindow(LIMITS), slidingLog(LIMITS)]) {
  test(`${policy.algorithm}: of tokens that another thread took after the look nothing is booked ahead, and what comes back may be taken`, () => {
    const clock = manualClock(0)
    const limiter = createLimiter(policy, { clock })
    const reserve = reserveNowOf(limiter)
    const other = attachLimiter(limiter.handle(), { clock })
    assert.ok(limiter.peek('a', 1).allowed)
    const taken = Array.from({ length: 3 }, () => other.reserve('a', 1))
    const made = reserve('a', 1) as EngineReservation
    assert.deepEqual([made.allowed, made.decision.allowed], [false, false])
    made.cancel()
    taken.at(-1)?.cancel()
    assert.equal((reserve('a', 1) as EngineReservation).waitMs, 0)
    assert.equal(limiter.take('a').allowed, false)
  })
}

describe('held by id', () => {
  function setUp(max = 10, maxPerKey = 3) {
    const clock = manualClock(500)
    const ended: string[] = []
    const held = new HeldById<string>(
      { what: 'things', max, maxPerKey },
      () => clock.nowMs(),
      (value) => ended.push(value),
    )
    const add = (key: string, value: string, ttlMs: number): string => {
      held.requireRoom(key)
      return held.add(key, value, ttlMs)
    }
    return { clock, ended, held, add }
  }

  test('a value is there until its time is over, and then ends once', () => {
    const { clock, ended, held, add } = setUp()
    const id = add('alice', 'a', 1_000)
    clock.advance(999)
    assert.equal(held.get(id), 'a')
    clock.advance(1)
    assert.deepEqual([held.get(id), held.remove(id), held.renew(id, 5)], [undefined, undefined, false])
    clock.advance(10_000)
    held.sweep()
    assert.deepEqual([ended, held.expired, held.size], [['a'], 1, 0])
  })

  test('values end without being asked for, also short ones, and renewed ones later', () => {
    const { clock, ended, held, add } = setUp()
    add('alice', 'short', 1)
    const renewed = add('alice', 'renewed', 2_000)
    add('bob', 'long', 60_000)
    clock.advance(1_500)
    held.sweep()
    assert.deepEqual(ended, ['short'])
    assert.equal(held.renew(renewed, 2_000), true)
    clock.advance(1_000)
    held.sweep()
    assert.deepEqual(ended, ['short'])
    clock.advance(3_000)
    held.sweep()
    assert.deepEqual(ended, ['short', 'renewed'])
    clock.advance(3_600_000)
    held.sweep()
    assert.deepEqual([ended, held.size], [['short', 'renewed', 'long'], 0])
  })

  test('an id stays nowhere for longer than its value, and once where it is renewed', () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const { clock, held, add } = setUp()
    const heapBytes = (): number => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const renewed = add('bob', 'b', 86_400_000)
    const before = heapBytes()
    for (let i = 0; i < 80_000; i++) {
      clock.advance(1_000)
      held.renew(renewed, 86_400_000)
      held.remove(add('alice', 'a', 86_400_000))
      held.sweep()
    }
    assert.ok(heapBytes() - before < 5e6)
    assert.equal(held.get(renewed), 'b')
  })

  test('values are bounded for each key and in all, and room comes back with each that ends', () => {
    const { clock, held, add } = setUp()
    const ids = ['a', 'b', 'c'].map((value) => add('alice', value, 5_000))
    assert.throws(() => held.requireRoom('alice'), TooManyHeldError)
    held.remove(ids[0] ?? '')
    add('alice', 'd', 5_000)
    for (let i = 0; i < 7; i++) add(`key ${i}`, 'x', 5_000)
    assert.throws(() => held.requireRoom('somewhere else'), TooManyHeldError)
    clock.advance(6_500)
    held.requireRoom('alice')
    assert.equal(held.size, 0)
  })

  test('an id is used once, and other texts are no ids', () => {
    const { held, add } = setUp()
    const id = add('alice', 'a', 1_000)
    for (const other of ['', '__proto__', id.toUpperCase(), `${id} `]) assert.equal(held.get(other), undefined)
    assert.deepEqual([held.remove(id), held.remove(id)], ['a', undefined])
  })
})
