import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Decision, manualClock } from 'sluicegate'
import { readConfig } from 'sluicegate-config/read-config.js'
import { Engine, type ServedPolicy } from './engine.js'
import type { ServedReservation } from './served-policy.js'

const HEAD = `
policies:
  tenant:
    algorithm: ALGORITHM
    limit: 10
    window: 1m
    tiers:
      pro: { limit: 100 }
      big: { limit: 1000, window: 1h }
`

function setUp(t: TestContext, keys: string, algorithm = 'token-bucket') {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-tiers-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'sluicegate.yaml')
  const read = (text: string, head = HEAD) => {
    writeFileSync(file, head.replace('ALGORITHM', algorithm) + text)
    return readConfig(file).policies
  }
  const clock = manualClock(0)
  const engine = new Engine(read(keys), { clock })
  t.after(() => engine.close())
  const take = (key: string, cost = 1) => engine.policy('tenant')?.take(key, cost) as Decision
  const left = (key: string) => ((engine.policy('tenant') as ServedPolicy).peek(key, 1) as Decision).remaining
  const use = (text: string, head?: string) => engine.prepare(read(text, head))()
  return { engine, clock, take, left, use, folder, read }
}

test('a key has the limit of its tier, its own, that of its longest prefix, or that of the policy', (t) => {
  const keys = `
    keys:
      acme: pro
      own: { limit: 7 }
      "eu-*": { limit: 20 }
      "eu-west-*": big
      "literal\\\\*": pro
`
  const { left, engine } = setUp(t, keys)
  assert.deepEqual(
    ['acme', 'own', 'eu-1', 'eu-', 'eu-west-1', 'e', 'other', 'literal*', 'literal1'].map(left),
    [100, 7, 20, 20, 1000, 10, 10, 100, 10],
  )
  const served = engine.policy('tenant')
  assert.deepEqual(
    [served?.policyOf('acme').limit, served?.policyOf('x').limit, served?.policyOf('eu-west-2').windowMs],
    [100, 10, 3_600_000],
  )
  assert.throws(() => served?.take(['a', 'b'], 1), { code: 'KEY_INVALID' })
})

for (const algorithm of ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log']) {
  test(`a key that changes its tier keeps what it has spent: ${algorithm}`, (t) => {
    const { take, left, use } = setUp(t, '', algorithm)
    for (const key of ['a', 'pre-b', 'full']) assert.equal(take(key, key === 'full' ? 10 : 4).allowed, true)
    use('    keys: { a: pro, "pre-*": pro, full: pro }\n')
    assert.deepEqual(['a', 'pre-b', 'full', 'new'].map(left), [96, 96, 90, 10])
    assert.deepEqual(['a', 'pre-b', 'full'].map(left), [96, 96, 90], 'once')
    use('    keys: { a: { limit: 50 } }\n')
    // Back without having been used in between.
    use('    keys: { a: pro, "pre-*": big }\n')
    assert.deepEqual(['a', 'pre-b'].map(left), [96, 996])
    assert.equal(left('full'), 0)
    use('')
    assert.deepEqual(['a', 'pre-b', 'full'].map(left), [6, 6, 0])
    assert.equal(take('full').allowed, false, 'spent under a larger limit is spent under a smaller one')
  })
}

for (const algorithm of ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log']) {
  test(`a key that moves to a smaller limit is closed no longer than that takes, and has no more when it comes back: ${algorithm}`, (t) => {
    const { take, left, use, clock } = setUp(t, '    keys: { a: big }\n', algorithm)
    for (let i = 0; i < 50; i++) assert.equal(take('a', 10).allowed, true)
    use('')
    const { allowed, retryAfterMs } = take('a')
    assert.equal(allowed, false)
    assert.ok(retryAfterMs <= 120_000, `closed for ${retryAfterMs} ms`)
    use('    keys: { a: big }\n')
    assert.equal(left('a'), 500)
    use('')
    clock.advance(2 * 3_600_000)
    assert.equal(take('a', 10).allowed, true)
  })
}

test('a changed limit of a tier keeps what its keys have spent, and a tier without keys that comes back too', (t) => {
  const { take, left, use } = setUp(t, '    keys: { a: pro }\n')
  take('a', 30)
  use('    keys: { a: pro }\n', HEAD.replace('limit: 100', 'limit: 40'))
  assert.equal(left('a'), 10)
  use('    keys: { a: big }\n', HEAD.replace('pro: { limit: 100 }', ''))
  use('    keys: { a: pro }\n')
  assert.equal(left('a'), 70)
})

test('a block of a key goes with it to another tier', (t) => {
  const { engine, clock, take, use } = setUp(t, '')
  engine.policy('tenant')?.block('a', 30_000)
  use('    keys: { a: pro }\n')
  assert.deepEqual([take('a').allowed, take('a').retryAfterMs], [false, 30_000])
  clock.advance(30_000)
  assert.equal(take('a').allowed, true)
})

test('random changes of tiers hand out no more than the largest limit that a key had in its window', (t) => {
  const { take, use, clock } = setUp(t, '', 'fixed-window')
  let seed = 7
  const random = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((seed / 2_147_483_648) * below)
  }
  const limits = [10, 100, 1_000]
  for (let round = 0; round < 20; round++) {
    clock.set(3_600_000 * (round + 1))
    let spent = 0
    let largest = 0
    for (let step = 0; step < 8; step++) {
      const tier = random(3)
      use(['', '    keys: { a: pro }\n', '    keys: { "a*": big }\n'][tier] as string, HEAD.replace(', window: 1h', ''))
      largest = Math.max(largest, limits[tier] as number)
      for (let i = random(60); i > 0; i--) if (take('a').allowed) spent++
      assert.ok(spent <= largest, `round ${round}: ${spent} of ${largest}`)
    }
  }
})

/** A section of so many keys with the same limit of their own. */
function ownLimits(keys: number): string {
  return `    keys: { ${Array.from({ length: keys }, (_, i) => `k${i}: { limit: 20 }`).join(', ')} }\n`
}

for (const algorithm of ['token-bucket', 'gcra', 'fixed-window', 'sliding-window', 'sliding-log']) {
  test(`keys with limits of their own become many more: each has its budget, and what it has spent: ${algorithm}`, (t) => {
    const { take, left, use, engine, read, clock } = setUp(t, ownLimits(10), algorithm)
    for (let i = 0; i < 10; i++) take(`k${i}`, 15)
    const held = engine.policy('tenant')?.reserve('k3', 2) as ServedReservation
    const dropped = engine.prepare(read(ownLimits(40)))
    assert.deepEqual([left('k0'), take('k1').remaining], [5, 4])
    dropped.discard()
    assert.deepEqual([left('k0'), left('k1'), left('k2')], [5, 4, 5])
    use(ownLimits(400))
    use(ownLimits(800))
    held.settle(5)
    const spent: number[] = []
    for (let i = 0; i < 800; i++) spent.push(left(`k${i}`))
    assert.deepEqual(spent.slice(0, 11), [5, 4, 5, 0, 5, 5, 5, 5, 5, 5, 20])
    for (let round = 0; round < 2; round++) for (let i = 10; i < 800; i++) assert.equal(take(`k${i}`, 10).allowed, true)
    for (let i = 0; i < 800; i++) assert.equal(take(`k${i}`, 6).allowed, false)
    // Not used between two changes, of which the second is one of room.
    use(ownLimits(10))
    use(ownLimits(2_000))
    assert.deepEqual([take('k799').allowed, left('k1999')], [false, 20])
    clock.advance(120_000)
    assert.equal(left('k5'), 20)
  })
}

test('policies that had no tiers get them, and lose them, with their keys', (t) => {
  const { take, left, use } = setUp(t, '', 'token-bucket')
  const plain = 'policies:\n  tenant: { algorithm: token-bucket, limit: 10, window: 1m }\n'
  use('', plain)
  take('a', 3)
  use('    keys: { a: pro }\n')
  assert.equal(left('a'), 97)
  use('', plain)
  assert.equal(left('a'), 7)
})

test('a policy with other parts, another algorithm or another table keeps what its keys have spent', (t) => {
  const parts = (...names: string[]): string => {
    const all = names.map((name) => `{ name: ${name}, algorithm: token-bucket, limit: 50, window: 1h }`)
    return `policies:\n  tenant: { all-of: [${all.join(', ')}] }\n`
  }
  const plain = (algorithm: string, more = '') => `policies:\n  tenant: { algorithm: ${algorithm}, limit: 50, window: 1h${more} }\n`
  const { read, clock } = setUp(t, '')
  const engine = new Engine(read('', plain('token-bucket')), { clock })
  t.after(() => engine.close())
  const take = (key: string, cost = 1) => engine.policy('tenant')?.take(key, cost) as Decision
  const left = (key: string) => ((engine.policy('tenant') as ServedPolicy).peek(key, 1) as Decision).remaining
  const use = (text: string, head?: string) => engine.prepare(read(text, head))()
  assert.equal(take('a', 10).remaining, 40)
  use('', plain('token-bucket', ', max-keys: 500'))
  assert.equal(left('a'), 40)
  use('', plain('sliding-window', ', max-keys: 600'))
  assert.equal(take('a', 5).remaining, 35)
  use('', parts('one', 'two'))
  assert.equal(take('b', 40).remaining, 10)
  use('', parts('two', 'three', 'four'))
  assert.equal(left('b'), 10, 'of two')
  use('', parts('three', 'five', 'six', 'seven'))
  assert.equal(left('b'), 50)
  use('', parts('one'))
  assert.equal(take('b').remaining, 9, 'of the limiter before the last two')
  clock.advance(12 * 3_600_000)
  assert.equal(take('b').remaining, 49)
})
