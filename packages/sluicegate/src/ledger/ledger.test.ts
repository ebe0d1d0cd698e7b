import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, seedsFrom } from 'sluicegate-testkit'
import { microtasks } from 'sluicegate-testkit/turns.js'
import { createLimiter, fixedWindow, type Hold, type Limiter, levels, manualClock } from '../index.js'
import { casStore } from '../store/index.js'
import { memoryStore } from '../store-testing/index.js'
import { createLedger, type LedgerRecord, type LedgerSink, replayedLedger } from './index.js'

const START_MS = 1_789_000_020_000

/** A sink that keeps what it is given; `state` says how it behaves. */
function kept() {
  const records: LedgerRecord[] = []
  const state: { mode: 'quick' | 'gone' | 'full' | 'lost answer'; calls: number; underWay: number; most: number } = {
    mode: 'quick',
    calls: 0,
    underWay: 0,
    most: 0,
  }
  const sink: LedgerSink = {
    async append(batch) {
      state.calls++
      state.most = Math.max(state.most, ++state.underWay)
      if (state.mode === 'gone') await new Promise(() => undefined)
      if (state.mode === 'full') {
        state.underWay--
        throw new Error('no room')
      }
      records.push(...batch)
      state.underWay--
      if (state.mode === 'lost answer') throw new Error('connection reset')
    },
  }
  return { records, state, sink }
}

test('work is opened, its pieces summed, and closed; a cost is taken, corrected and given back', async () => {
  const clock = manualClock(START_MS)
  const { records, sink } = kept()
  const ledger = createLedger(sink, { clock })
  const limiter = createLimiter(
    levels({ org: fixedWindow({ limit: 1_000, window: 'day' }), user: fixedWindow({ limit: 100, window: '1h' }) }),
    {
      clock,
      ledger,
    },
  )
  const key = { org: 'acme', user: 'ada' }
  const work = limiter.open(key, { expect: 50 })
  for (let i = 0; i < 10; i++) work.add(2)
  assert.equal(records.length, 0, 'nothing waits for it')
  clock.advance(1_000)
  await microtasks(20)
  work.add(1)
  work.close(30)
  limiter.take(key, 5)
  limiter.take(key, 1_000)
  limiter.refund(key, 2)
  await limiter.run(key, (job) => job.settle(3), { cost: 7 })
  limiter.open(key, { expect: 10, ttl: '10s' })
  limiter.open(key, { expect: 101 })
  clock.advance(12_000)
  await ledger.flush()
  assert.deepEqual(
    records.map(({ event, hold, tokens }) => [event, hold, tokens]),
    [
      ['open', 1, 50],
      ['add', 1, 20],
      ['close', 1, 10],
      ['take', undefined, 5],
      ['refund', undefined, -2],
      ['take', undefined, 7],
      ['settle', undefined, -4],
      ['open', 2, 10],
      ['lapse', 2, 0],
    ],
  )
  assert.deepEqual(records[0]?.levels, [
    { policy: 'org', key: 'acme' },
    { policy: 'user', key: 'ada' },
  ])
  assert.deepEqual(
    records.map(({ number }) => number),
    [1, 2, 3, 4, 5, 6, 7, 8, 9],
  )
  assert.deepEqual(ledger.stats(), { appended: 9, lost: 0, waiting: 0, open: 0 })
  const [org, user] = limiter.peek(key).parts ?? []
  assert.deepEqual(
    replayedLedger(records).map(({ spent, held }) => [spent, held]),
    [
      [1_000 - (org?.remaining ?? 0), 0],
      [100 - (user?.remaining ?? 0), 0],
    ],
  )
})

for (const mode of ['gone', 'full', 'lost answer'] as const) {
  test(`a sink that is ${mode} holds up nothing; what is lost is counted, and seen by its number`, async () => {
    const clock = manualClock(START_MS)
    const { records, state, sink } = kept()
    const ledger = createLedger(sink, { clock, maxWaiting: 5, every: '1s' })
    const limiter = createLimiter(fixedWindow({ limit: 1_000, window: 'day' }), { clock, ledger })
    limiter.take('a')
    await ledger.flush()
    state.mode = mode
    limiter.take('a')
    const flushed = ledger.flush()
    for (let i = 0; i < 8; i++) assert.equal(limiter.take('a').allowed, true)
    if (mode === 'gone') {
      // Two are with the sink, or told it; three of the eight found no room.
      assert.deepEqual([ledger.stats().waiting, ledger.stats().lost, state.most], [5, 3, 1])
      return
    }
    await flushed
    state.mode = 'quick'
    await ledger.close()
    const { appended, lost, waiting } = ledger.stats()
    assert.deepEqual([appended + lost, waiting, state.most], [10, 0, 1])
    const numbers = records.map(({ number }) => number)
    assert.equal(new Set(numbers).size, numbers.length, 'none twice')
    assert.ok(lost > 0 && numbers.length < 10 && !Number.isNaN(numbers.at(-1)))
    limiter.take('a')
    assert.equal(ledger.stats().waiting, 0, 'what happens after close is not recorded')
  })
}

test('what work has spent is kept while there is no room, so that only records are late', async () => {
  const clock = manualClock(START_MS)
  const { records, sink } = kept()
  const ledger = createLedger(sink, { clock, maxWaiting: 1 })
  const limiter = createLimiter(fixedWindow({ limit: 1_000, window: 'day' }), { clock, ledger })
  const work = limiter.open('a', { expect: 100 })
  work.add(10)
  const first = ledger.flush()
  work.add(5)
  await first
  await ledger.flush()
  assert.deepEqual(
    records.map(({ event, tokens }) => `${event} ${tokens}`),
    ['open 100', 'add 15'],
  )
  assert.equal(ledger.stats().lost, 0)
})

test('levels of one name in two named wholes have balances of their own', async () => {
  const { records, sink } = kept()
  const ledger = createLedger(sink)
  const clock = manualClock(START_MS)
  for (const [i, name] of ['requests', 'tokens', undefined].entries()) {
    const policy = levels({ user: fixedWindow({ limit: 100, window: 'day' }) }, name === undefined ? {} : { name })
    createLimiter(policy, { clock, ledger }).take('ada', 10 * (i + 1))
  }
  await ledger.flush()
  assert.deepEqual(
    replayedLedger(records).map(({ over, held, ...balance }) => balance),
    [
      { whole: 'requests', policy: 'user', key: 'ada', spent: 10 },
      { whole: 'tokens', policy: 'user', key: 'ada', spent: 20 },
      { policy: 'user', key: 'ada', spent: 30 },
    ],
  )
})

type Fault = 'none' | 'an add is written twice' | 'a close has the whole cost' | 'a denial is charged'

function withFault(sink: LedgerSink, fault: Fault): LedgerSink {
  const opened = new Map<number | undefined, number>()
  return {
    append: (batch) =>
      sink.append(
        batch.flatMap((record): LedgerRecord[] => {
          if (record.event === 'add') opened.set(record.hold, (opened.get(record.hold) ?? 0) + record.tokens)
          if (fault === 'an add is written twice' && record.event === 'add') return [record, record]
          if (fault === 'a close has the whole cost' && record.event === 'close')
            return [{ ...record, tokens: record.tokens + (opened.get(record.hold) ?? 0) }]
          if (fault === 'a denial is charged' && record.event === 'open') return [record, { ...record, event: 'take', tokens: 1 }]
          return [record]
        }),
      ),
  }
}

/** A random history within one window, of which the ledger must say what the limiter says at each flush. */
async function mismatch(seed: number, shared: boolean, fault: Fault): Promise<string | undefined> {
  const random = new Random(seed)
  const clock = manualClock(START_MS)
  const { records, sink } = kept()
  const ledger = createLedger(withFault(sink, fault), { clock })
  const policy = levels({ org: fixedWindow({ limit: 5_000, window: 'day' }), user: fixedWindow({ limit: 1_000, window: 'day' }) })
  const limiter = shared
    ? createLimiter(policy, { clock, ledger, store: casStore(memoryStore({ clock })), mode: 'exact' })
    : createLimiter(policy, { clock, ledger, maxKeys: 100 })
  const works: Hold[] = []
  const peek = async (user: string) =>
    ((await limiter.peek(['acme', user])).parts ?? []).map(({ remaining }, i) => (i === 0 ? 5_000 : 1_000) - remaining)
  for (let step = 0; step < 80; step++) {
    const user = random.pick(['ada', 'bob'])
    const key = ['acme', user]
    const cost = random.magnitude(1, 60)
    const chance = random.fraction()
    if (chance < 0.25) await limiter.take(key, cost)
    else if (chance < 0.3) await limiter.penalize(key, cost)
    else if (chance < 0.5 && !shared) works.push((limiter as Limiter).open(key, { expect: cost, ttl: '5s' }))
    else if (chance < 0.75 && works.length > 0) random.pick(works).add(random.integer(0, 20))
    else if (chance < 0.85 && works.length > 0) random.pick(works).close(random.chance(0.5) ? undefined : random.magnitude(1, 90))
    else clock.advance(random.integer(0, 2_000))
    if (!random.chance(0.1)) continue
    await ledger.flush()
    const balances = replayedLedger(records)
    for (const name of ['ada', 'bob']) {
      const [org, own] = await peek(name)
      const said = (policyName: string, keyName: string) => {
        const found = balances.find((balance) => balance.policy === policyName && balance.key === keyName)
        return (found?.spent ?? 0) + (found?.held ?? 0)
      }
      if (said('org', 'acme') !== org || said('user', name) !== own) return `${said('org', 'acme')} ${said('user', name)} for ${org} ${own}`
    }
  }
  await ledger.close()
  limiter.close()
  return undefined
}

for (const shared of [false, true]) {
  test(`the ledger says what the limiter says, ${shared ? 'over a store' : 'in memory, with holds that lapse'}`, async () => {
    for (const seed of seedsFrom(1, shared ? 10 : 60)) assert.equal(await mismatch(seed, shared, 'none'), undefined, `seed ${seed}`)
  })
}

for (const fault of ['an add is written twice', 'a close has the whole cost', 'a denial is charged'] as const) {
  test(`a ledger where ${fault} would be found`, async () => {
    let found = false
    for (const seed of seedsFrom(1, 20)) found ||= (await mismatch(seed, false, fault)) !== undefined
    assert.equal(found, true)
  })
}
