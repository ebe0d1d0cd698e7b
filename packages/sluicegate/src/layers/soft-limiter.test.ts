import assert from 'node:assert/strict'
import { channel } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { Random, seedsFrom } from 'sluicegate-testkit'
import { HeaderWriter } from '../headers/header-writer.js'
import { allOf, createLimiter, fixedWindow, levels, manualClock, type Policy, tokenBucket } from '../index.js'
import type { SoftLimitEvent } from '../soft-limit-options.js'
import { checkedSoftLimits } from '../soft-limit-options.js'
import { casStore } from '../store/index.js'
import { memoryStore } from '../store-testing/index.js'
import { SoftLimiter } from './soft-limiter.js'

const START_MS = 1_789_000_020_000
const MINUTE = 60_000

const shown = ({ policy, key, threshold, used }: SoftLimitEvent): string => `${policy} ${key} ${threshold} ${used}`

test('a key that reaches a soft limit passes, is announced once a window, and named in its decisions', () => {
  const clock = manualClock(START_MS)
  const events: string[] = []
  const limiter = createLimiter(fixedWindow({ limit: 10, window: '1m', name: 'team' }), {
    clock,
    soft: ['100%', '80%'],
    onSoft: (event) => events.push(shown(event)),
  })
  assert.equal(limiter.take('a', 7).soft, undefined)
  assert.deepEqual([limiter.take('a').allowed, limiter.peek('a').soft, events], [true, ['team'], ['team a 80% 8']])
  limiter.take('a', 2)
  const denied = limiter.take('a')
  assert.deepEqual([denied.allowed, denied.soft, events], [false, ['team'], ['team a 80% 8', 'team a 100% 10']])
  limiter.take('b', 10)
  assert.deepEqual(events.slice(2), ['team b 80% 10', 'team b 100% 10'], 'another key')
  clock.advance(MINUTE)
  limiter.take('a', 9)
  assert.deepEqual(events.slice(4), ['team a 80% 9'], 'another window')
})

test('of several policies each has its own, and one of levels its own key', () => {
  const events: string[] = []
  const limiter = createLimiter(
    levels({ org: fixedWindow({ limit: 100, window: '1m' }), user: tokenBucket({ limit: 10, window: '1m' }) }),
    { clock: manualClock(START_MS), soft: { user: ['50%'] }, onSoft: (event) => events.push(shown(event)) },
  )
  const decision = limiter.take({ org: 'acme', user: 'ada' }, 5)
  assert.deepEqual([decision.soft, decision.parts?.length, events], [['user'], 2, ['user ada 50% 5']])
  assert.deepEqual(new HeaderWriter().write(limiter.policy, decision).at(-1), ['RateLimit-Soft', '"user"'])
  const all = createLimiter(
    allOf([fixedWindow({ limit: 4, window: '1m', name: 'x' }), fixedWindow({ limit: 4, window: '1m', name: 'y' })]),
    {
      clock: manualClock(START_MS),
      soft: ['100%'],
    },
  )
  assert.deepEqual(all.key('a').take(4).soft, ['x', 'y'])
})

test('holds are looked at when they open and when they close', async () => {
  const events: string[] = []
  const limiter = createLimiter(fixedWindow({ limit: 100, window: '1m', name: 'spend' }), {
    clock: manualClock(START_MS),
    soft: ['50%', '90%'],
    onSoft: (event) => events.push(shown(event)),
  })
  const work = limiter.open('a', { expect: 60 })
  assert.deepEqual([work.soft, work.held, events], [['spend'], 60, ['spend a 50% 60']])
  assert.equal(work.add(70), true)
  assert.deepEqual([work.held, work.used, work.affordable(1)], [0, 70, 30])
  assert.deepEqual([work.close(95).soft, events.at(-1)], [['spend'], 'spend a 90% 95'])
  assert.deepEqual(
    [limiter.open('whole', { expect: 100 }).soft, events.splice(2)],
    [['spend'], ['spend whole 50% 100', 'spend whole 90% 100']],
  )
  await limiter.run('b', (job) => job.settle(99), { cost: 10 })
  assert.deepEqual(events.slice(2), ['spend b 50% 99', 'spend b 90% 99'], 'what is settled, too')
})

test('the channel has each event, and a callback that fails is a warning', (t) => {
  const seen: string[] = []
  const listener = (event: unknown): void => void seen.push(shown(event as SoftLimitEvent))
  channel('sluicegate:soft-limit').subscribe(listener)
  t.after(() => channel('sluicegate:soft-limit').unsubscribe(listener))
  const { mock } = t.mock.method(process, 'emitWarning', () => undefined)
  const limiter = createLimiter(fixedWindow({ limit: 1, window: '1m', name: 'one' }), {
    soft: ['100%'],
    clock: manualClock(START_MS),
    onSoft: () => {
      throw new Error('mine')
    },
  })
  assert.equal(limiter.take('a').allowed, true)
  assert.deepEqual([seen, mock.callCount()], [['one a 100% 1'], 1])
})

test('what is no soft limit is refused', () => {
  const policy = fixedWindow({ limit: 1, window: '1m', name: 'one' })
  for (const options of [
    { soft: [] },
    { soft: '80%' },
    { soft: ['80'] },
    { soft: ['0%'] },
    { soft: ['1001%'] },
    { soft: { other: ['80%'] } },
    { soft: { one: 80 } },
    { soft: ['80%'], onSoft: 1 },
    { onSoft: () => undefined },
  ]) {
    assert.throws(() => createLimiter(policy, options as never), { name: 'PolicyError', code: 'OPTION_INVALID' }, JSON.stringify(options))
  }
})

/** What should be announced: each threshold that a key has reached after a step, once a window. */
class Expected {
  readonly events = new Set<string>()
  private readonly spent = new Map<string, number>()

  step(key: string, cost: number, limit: number, nowMs: number, thresholds: readonly number[]): void {
    const window = Math.floor(nowMs / MINUTE)
    const id = `${window} ${key}`
    const before = this.spent.get(id) ?? 0
    const spent = before + cost <= limit ? before + cost : before
    this.spent.set(id, spent)
    for (const percent of thresholds) if (spent * 100 >= percent * limit) this.events.add(`${id} ${percent}%`)
  }
}

type Fault = 'none' | 'announces each' | 'never again'

/** Random takes of three limiters with one budget; the events of all of them, each with its window. */
async function history(seed: number, shared: boolean, fault: Fault): Promise<{ seen: string[]; expected: string[] }> {
  const dice = new Random(seed)
  const clock = manualClock(START_MS)
  const limit = 1 + dice.integer(0, 39)
  const percents = [1 + dice.integer(0, 98), 100]
  const policy = fixedWindow({ limit, window: '1m', name: 'team' })
  const store = casStore(memoryStore({ clock }))
  const seen: string[] = []
  const soft = percents.map((percent) => `${percent}%` as const)
  const onSoft = ({ key, threshold }: SoftLimitEvent): void => void seen.push(`${Math.floor(clock.nowMs() / MINUTE)} ${key} ${threshold}`)
  const plain = (each: Policy) =>
    shared ? createLimiter(each, { store, clock, mode: 'exact' }) : createLimiter(each, { clock, maxKeys: 100 })
  const faulty = (each: Policy) =>
    fault === 'announces each'
      ? createLimiter(fixedWindow({ limit: 1_000_000, window: '1m' }), { clock })
      : plain(fault === 'never again' ? fixedWindow({ limit: 1, window: '30d', name: each.name }) : each)
  const limits = checkedSoftLimits({ soft }, policy)
  assert.ok(limits !== undefined)
  const one = () =>
    fault === 'none'
      ? createLimiter(policy, shared ? { store, clock, mode: 'exact', soft, onSoft } : { clock, soft, onSoft })
      : new SoftLimiter(plain(policy), { limits, onSoft, clock, make: faulty })
  const limiters = shared ? [one(), one(), one()] : [one()]
  const expected = new Expected()
  for (let i = 0; i < 60; i++) {
    const key = `k${dice.integer(0, 1)}`
    const cost = 1 + dice.integer(0, limit - 1)
    const limiter = limiters[dice.integer(0, limiters.length - 1)]
    await limiter?.take(key, cost)
    expected.step(key, cost, limit, clock.nowMs(), percents)
    // An announcement over a store is under way when the take has its answer.
    await new Promise((resolve) => setImmediate(resolve))
    clock.advance(dice.chance(0.2) ? dice.integer(1, 2 * MINUTE) : dice.integer(0, 500))
  }
  return { seen: seen.sort(), expected: [...expected.events].sort() }
}

for (const shared of [false, true]) {
  test(`each threshold is announced once a window and key, ${shared ? 'by one of three processes over a store' : 'in memory'}`, async () => {
    for (const seed of seedsFrom(1, shared ? 10 : 40)) {
      const { seen, expected } = await history(seed, shared, 'none')
      assert.deepEqual(seen, expected, `seed ${seed}`)
    }
  })
}

for (const fault of ['announces each', 'never again'] as const) {
  test(`the histories find an announcer that ${fault === 'announces each' ? 'lets each process announce' : 'knows no new window'}`, async () => {
    const found = await Promise.all(
      [...seedsFrom(1, 10)].map(async (seed) => {
        const { seen, expected } = await history(seed, true, fault)
        return JSON.stringify(seen) !== JSON.stringify(expected)
      }),
    )
    assert.ok(found.includes(true))
  })
}

test('levels whose long names differ at their end are announced each', () => {
  const events: string[] = []
  const long = 'a'.repeat(100)
  const limiter = createLimiter(
    levels({ [`${long}.read`]: fixedWindow({ limit: 10, window: '1h' }), [`${long}.write`]: fixedWindow({ limit: 10, window: '1h' }) }),
    {
      soft: ['80%'],
      onSoft: ({ policy }) => events.push(policy.slice(100)),
    },
  )
  limiter.take('ada', 9)
  assert.deepEqual(events, ['.read', '.write'])
})
