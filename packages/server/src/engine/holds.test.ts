import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Decision, manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { type Added, type Closed, Engine, type Opened, TooManyHeldError, type WorkAsked } from './engine.js'
import { SWEPT_AT_ONCE } from './held-by-id.js'

const ASKED: WorkAsked = { expect: 60, most: Number.POSITIVE_INFINITY, ttlMs: 15_000, over: 'cut' }

function yamlOf(policy: string): string {
  return `policies: { api: { ${policy} } }`
}

function setUp(t: TestContext, policy: string) {
  const clock = manualClock(0)
  const engine = new Engine(parseConfig(yamlOf(policy)).policies, { clock })
  t.after(() => engine.close())
  const served = () => engine.policy('api') ?? assert.fail()
  const open = (more: Partial<WorkAsked> = {}, key = 'ada') => engine.holds.open(served(), key, { ...ASKED, ...more }, 0) as Opened
  const opened = (more: Partial<WorkAsked> = {}): string => open(more).id ?? assert.fail()
  const add = (id: string, cost: number): Added => engine.holds.add(id, cost) as Added
  const close = (id: string, cost?: number): Closed => engine.holds.close(id, cost) as Closed
  const left = (): number => (served().uncounted.peek('ada', 1) as Decision).remaining
  const reload = (next: string): void => void engine.prepare(parseConfig(yamlOf(next)).policies)()
  return { engine, clock, served, open, opened, add, close, left, reload }
}

const BUCKET = 'algorithm: token-bucket, limit: 100, window: 30d'
const TIERS = 'tiers: { large: { limit: 300 }, small: { limit: 20 } }'

test('work goes on under the plan to which its key moves, with what it holds where there is room', (t) => {
  const { opened, add, close, left, reload, served } = setUp(t, `${BUCKET}, ${TIERS}`)
  const id = opened()
  assert.equal(add(id, 30).used, 30)
  reload(`${BUCKET}, ${TIERS}, keys: { ada: large }`)
  assert.deepEqual([add(id, 10).isAdded, left()], [true, 300 - 40 - 20])
  assert.deepEqual([close(id, 45).used, left()], [45, 255])
  assert.deepEqual(served().holds, { open: 0, held: 0, spent: 45, over: 0, lapsed: 0, cut: 0 })
})

test('under a plan without room what is held is spent all the same, and further pieces are refused, or debt, as the work said', (t) => {
  const { opened, add, close, left, reload } = setUp(t, `${BUCKET}, ${TIERS}`)
  const cut = opened({ expect: 40 })
  const finish = opened({ expect: 40, over: 'finish', most: 60 })
  assert.deepEqual([add(cut, 15).used, add(finish, 5).used], [15, 5])
  reload(`${BUCKET}, ${TIERS}, keys: { ada: small }`)
  assert.deepEqual([add(cut, 1).used, add(finish, 9).used, left()], [16, 14, 0])
  const refused = add(cut, 25)
  assert.deepEqual([refused.isAdded, refused.used, refused.held, refused.decision?.limit], [false, 16, 24, 20])
  const debt = add(finish, 30)
  assert.deepEqual([debt.isAdded, debt.used, debt.over, debt.affordable], [true, 44, 4, 0])
  assert.equal(add(finish, 17).isAdded, false, 'beyond its most, under whatever plan')
  assert.deepEqual([close(cut).used, close(finish, 46).over, left()], [16, 6, 0])
})

test('what is held counts once under the plan to which its key goes, and back, and is no debt of either', (t) => {
  const small = `${BUCKET}, ${TIERS}, keys: { ada: small }`
  const { opened, add, close, left, reload } = setUp(t, `${BUCKET}, ${TIERS}`)
  const id = opened()
  add(id, 10)
  // 10 are spent and 50 held: more than the smaller plan has.
  reload(small)
  assert.deepEqual([left(), add(id, 0).held], [0, 50])
  reload(`${BUCKET}, ${TIERS}`)
  assert.deepEqual([left(), add(id, 5).held, left()], [100 - 60, 45, 100 - 60])
  reload(small)
  reload(`${BUCKET}, ${TIERS}, keys: { ada: large }`)
  assert.deepEqual([add(id, 5).held, left()], [40, 300 - 60])
  assert.deepEqual([close(id).used, left()], [20, 300 - 20])
})

for (const window of ['fixed-window', 'sliding-window', 'sliding-log']) {
  test(`work goes on with what it holds when its key goes to ${window}, and back`, (t) => {
    const { opened, add, close, left, reload } = setUp(t, BUCKET)
    const [id, other] = [opened({ expect: 40 }), opened({ expect: 20 })]
    add(id, 10)
    reload(`algorithm: ${window}, limit: 100, window: 30d`)
    assert.deepEqual([left(), add(id, 10).held, left()], [40, 20, 40])
    assert.deepEqual([add(other, 5).held, left()], [15, 40])
    reload(BUCKET)
    assert.deepEqual([left(), add(id, 5).held, add(other, 5).held, left()], [40, 15, 10, 40])
    assert.deepEqual([close(id).used, close(other).used, left()], [25, 10, 100 - 35])
  })
}

test('another algorithm or other numbers keep what work has spent, and its hold', (t) => {
  const { opened, add, close, left, reload } = setUp(t, BUCKET)
  const id = opened()
  add(id, 30)
  reload('algorithm: gcra, limit: 100, window: 30d, burst: 100')
  assert.deepEqual([add(id, 10).used, left()], [40, 100 - 40 - 20])
  reload('algorithm: gcra, limit: 200, window: 30d, burst: 200')
  assert.deepEqual([add(id, 10).isAdded, close(id, 55).used], [true, 55])
  assert.ok(left() >= 100 - 55)
})

test('a block ends what work may add, a reset gives back what it spent, and a removed policy takes its holds along', (t) => {
  const { engine, served, opened, add, close, left } = setUp(t, BUCKET)
  const id = opened()
  add(id, 30)
  served().block('ada', 60_000)
  assert.equal(add(id, 1).isAdded, false)
  served().block('ada', 0)
  assert.equal(add(id, 1).isAdded, true)
  served().reset('ada')
  assert.deepEqual([left(), add(id, 4).used, left()], [100 - 29, 35, 100 - 29])
  const other = opened({ expect: 10 })
  engine.remove('api')
  assert.deepEqual(engine.holds.add(id, 1), { fault: 'unknown' })
  assert.deepEqual(engine.holds.close(other, 5), { fault: 'unknown' })
  assert.deepEqual(close(other, 5), { fault: 'unknown' })
})

test('the debt of work is bounded by max-settle: no close and no piece shuts a key out for years', (t) => {
  const { opened, add, close, served, clock } = setUp(t, `${BUCKET.replace('30d', '1m')}, max-settle: 2`)
  const id = opened({ expect: 40 })
  add(id, 30)
  // 70 are left, and twice the expectation is the most debt.
  const { used, over } = close(id, Number.MAX_SAFE_INTEGER)
  assert.deepEqual([used, over], [30 + 70 + 80, 80])
  clock.advance(108_000 + 60_000)
  const finish = opened({ expect: 10, over: 'finish' })
  assert.equal(add(finish, 121).isAdded, false)
  assert.deepEqual([add(finish, 120).isAdded, add(finish, 1).isAdded, add(finish, 0).isAdded], [true, false, true])
  assert.equal(served().holds.over, 100)
})

test('a hold whose time is over at the very call is heard of all the same', (t) => {
  const { opened, add, close, clock } = setUp(t, BUCKET)
  const [first, second] = [opened({ expect: 10 }), opened({ expect: 10 })]
  clock.advance(18_000)
  assert.deepEqual([add(first, 5).used, close(second, 7).used], [5, 7])
})

test('the id of a caller may be used again once the work before is forgotten: then it is other work', (t) => {
  const { opened, add, close, clock, served } = setUp(t, BUCKET)
  // It is remembered for longer, and in front of what ends after it.
  close(opened({ ttlMs: 3_600_000, expect: 1 }), 0)
  const asked = { id: crypto.randomUUID(), ttlMs: 1_000, expect: 10 }
  close(opened(asked), 5)
  clock.advance(1_500)
  assert.equal(add(opened(asked), 3).used, 3)
  // It lapses, and is forgotten.
  clock.advance(3_500)
  const id = opened(asked)
  assert.deepEqual([add(id, 2).used, served().holds.open], [2, 1])
  assert.deepEqual([close(id).used, served().holds.open], [2, 0])
})

test('a flood of holds that nobody closes takes bounded memory, and ends by itself', (t) => {
  const { engine, clock, open, served } = setUp(t, `${BUCKET}, max-keys: 400000`)
  const before = process.memoryUsage().heapUsed
  let refused = 0
  for (let i = 0; i < 160_000; i++) {
    try {
      if (open({ expect: 1 }, `flood ${i % 90_000}`).id === undefined) refused++
    } catch (error) {
      assert.ok(error instanceof TooManyHeldError)
      refused++
    }
  }
  assert.deepEqual([served().holds.open, refused], [100_000, 60_000])
  assert.ok(process.memoryUsage().heapUsed - before < 600e6, `${(process.memoryUsage().heapUsed - before) / 1e6} MB`)
  assert.throws(() => open(), TooManyHeldError)
  clock.advance(17_000)
  sweptInSlices(engine, () => served().holds.open)
  assert.deepEqual([served().holds.open, served().holds.lapsed, served().holds.held], [0, 100_000, 0])
  assert.equal(open().decision.allowed, true)
})

test('after its close the last answers of a hold are repeated, and its id opens nothing', (t) => {
  const { engine, opened } = setUp(t, BUCKET)
  const id = opened({ expect: 10 })
  const added = engine.holds.add(id, 3, 1)
  const closed = engine.holds.close(id, 5, 2)
  assert.deepEqual([engine.holds.close(id, 5, 2), engine.holds.add(id, 3, 1)], [closed, added])
  assert.deepEqual([engine.holds.add(id, 1, 3), engine.holds.close(id, 9, 3)], [{ fault: 'closed' }, { fault: 'closed' }])
})

test('of work that lapsed the 100,000 latest are remembered; what is said of the others is that nobody knows them', (t) => {
  const { engine, clock, open, served } = setUp(t, 'algorithm: fixed-window, limit: 1000000, window: year')
  const asked = { expect: 1, ttlMs: 60_000 }
  const first = open({ expect: 1, ttlMs: 58_000 }, 'first').id ?? assert.fail()
  clock.advance(60_000)
  sweptInSlices(engine, () => served().holds.open)
  for (let i = 0; i < 100_000; i++) engine.holds.close(open(asked, `key ${i % 90}`).id ?? assert.fail())
  // Twice its time has not gone by.
  assert.deepEqual(engine.holds.add(first, 1), { fault: 'unknown' })
})

test('holds whose time is over count no more, before all of them are swept', (t) => {
  const { engine, clock, served, open, add } = setUp(t, 'algorithm: fixed-window, limit: 1000000, window: year')
  const asked = { expect: 1, ttlMs: 2_000 }
  const ids: string[] = []
  for (let i = 0; i < 100_000; i++) ids.push(open(asked, `key ${Math.floor(i / 2_000)}`).id ?? assert.fail())
  assert.throws(() => open(asked, 'another'), TooManyHeldError)
  clock.advance(2_900)
  // Each of these sweeps no more than a slice, of the first keys.
  assert.equal(open(asked, 'another').decision.allowed, true)
  assert.equal(open(asked, 'key 49').decision.allowed, true, 'which had as many as a key may have')
  assert.equal(served().holds.open > 90_000, true)
  const last = add(ids.at(-1) ?? assert.fail(), 3)
  assert.deepEqual([last.isAdded, last.held], [true, 0], 'it lapsed, and is open again')
  sweptInSlices(engine, () => served().holds.open)
  assert.equal(served().holds.open, 3)
})

/** No sweep ends more than a slice of what is open. */
function sweptInSlices(engine: Engine, openNow: () => number): void {
  for (let isDone = false, before = openNow(); !isDone; before = openNow()) {
    isDone = engine.sweep()
    assert.ok(before - openNow() <= SWEPT_AT_ONCE, `${before - openNow()} at once`)
  }
}

test('histories of random calls, repeated ones among them, spend what each call spent once, and no more than the policy', (t) => {
  const SEED = 47
  let state = SEED
  const random = (n: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * n)
  }
  for (let round = 0; round < 40; round++) {
    const { engine, clock, open, left, served } = setUp(t, 'algorithm: fixed-window, limit: 200, window: year')
    const works: { id: string; call: number; used: number; isClosed: boolean; last?: unknown }[] = []
    let debt = 0
    for (let step = 0; step < 120; step++) {
      const work = works[random(works.length)]
      const kind = random(10)
      if (work === undefined || kind < 2) {
        const { id } = open({ expect: 1 + random(30), over: random(3) === 0 ? 'finish' : 'cut' })
        if (id !== undefined) works.push({ id, call: 0, used: 0, isClosed: false })
      } else if (kind < 7) {
        const cost = random(20)
        const answer = engine.holds.add(work.id, cost, ++work.call)
        // The reply was lost: the call is repeated.
        if (random(2) === 0) assert.deepEqual(engine.holds.add(work.id, cost, work.call), answer)
        const made = answer as Added
        if (work.isClosed || 'fault' in made) {
          // Closed, or not heard of for long.
          assert.ok('fault' in made, JSON.stringify(made))
          work.isClosed = true
        } else {
          if (made.isAdded) work.used += cost
          assert.equal(made.used, work.used)
        }
      } else if (kind < 9) {
        if (work.isClosed) continue
        const whole = random(2) === 0 ? undefined : work.used + random(10)
        const answer = engine.holds.close(work.id, whole, ++work.call) as Closed
        assert.deepEqual(engine.holds.close(work.id, whole, work.call), answer)
        work.isClosed = true
        if ('fault' in answer) continue
        work.used = Math.max(work.used, whole ?? 0)
        assert.equal(answer.used, work.used)
      } else clock.advance(random(9_000))
      debt = served().holds.over
      const spent = works.reduce((sum, { used }) => sum + used, 0)
      assert.equal(served().holds.spent, spent, `seed ${SEED}, round ${round}`)
      assert.ok(spent <= 200 + debt, `seed ${SEED}, round ${round}`)
    }
    engine.sweep()
    clock.advance(60_000)
    engine.sweep()
    assert.equal(left(), Math.max(0, 200 - works.reduce((sum, { used }) => sum + used, 0)))
    engine.close()
  }
})

test('where all places are taken, work that has spent nothing for 15 s makes room for others, and no other work does', (t) => {
  const { engine, clock, served, open, add } = setUp(t, 'algorithm: fixed-window, limit: 1000000, window: year')
  const asked = { expect: 1, ttlMs: 3_600_000 }
  const ids: string[] = []
  for (let i = 0; i < 100_000; i++) ids.push(open(asked, `key ${i % 50}`).id ?? assert.fail())
  const [spent, renewed, first, second] = ids as [string, string, string, string]
  add(spent, 1)
  assert.throws(() => open(asked), TooManyHeldError)
  clock.advance(14_999)
  add(renewed, 0)
  assert.throws(() => open(asked), TooManyHeldError)
  clock.advance(1)
  assert.equal(open(asked).decision.allowed, true)
  assert.deepEqual([engine.holds.add(first, 1), engine.holds.close(first)], [{ fault: 'unknown' }, { fault: 'unknown' }])
  for (const id of [spent, renewed, second]) assert.equal(add(id, 1).isAdded, true)
  assert.deepEqual([served().holds.open, served().holds.held, served().holds.lapsed], [100_000, 99_997, 1])
  const key = served().uncounted.peek('key 2', 1) as Decision
  assert.equal(key.remaining, 1_000_000 - 2_000 + 1, 'nothing is held for what made room')
})

test('a piece that waits under a policy which a reload removes is answered, as all later calls of its work are', async (t) => {
  const { engine, opened, served } = setUp(t, BUCKET)
  const id = opened({ expect: 10, over: 'wait' })
  assert.equal((served().take('ada', 90) as Decision).allowed, true)
  const waiting = engine.holds.add(id, 20, 1)
  engine.prepare([])()
  for (const answer of [await waiting, await engine.holds.add(id, 1, 2), await engine.holds.close(id)])
    assert.deepEqual(answer, { fault: 'unknown' })
})
