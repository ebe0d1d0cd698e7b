import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type HoldsById, manualClock, StoreError } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { turns } from 'sluicegate-testkit/turns.js'
import { Engine } from './engine.js'
import { WorkOpenedHere } from './work-opened-here.js'

type HoldAnswer = Awaited<ReturnType<HoldsById['open']>>

const TTL_MS = 10_000

function setUp(t: TestContext) {
  const clock = manualClock()
  const engine = new Engine(parseConfig('policies: { api: { algorithm: fixed-window, limit: 10, window: 1m } }').policies)
  t.after(() => engine.close())
  const served = engine.policy('api') ?? assert.fail()
  const answerOf = (held: number, used: number, fault?: HoldAnswer['fault']): HoldAnswer => {
    const decision = { allowed: true, limit: 10, remaining: 0, retryAfterMs: 0, resetAfterMs: 0, policy: 'api', source: 'store' } as const
    return { isDone: fault === undefined, decision, held, used, over: 0, spent: 0, debt: 0, fault }
  }
  const looks = new Map<string, { resolve(answer: HoldAnswer): void; reject(error: unknown): void }>()
  const work = new WorkOpenedHere(
    () => clock.nowMs(),
    (_, number) => new Promise((resolve, reject) => looks.set(number, { resolve, reject })),
  )
  const counts = () => [served.holds.open, served.holds.held]
  const silent = (): void => {
    looks.clear()
    clock.advance(TTL_MS)
    work.sweep()
  }
  const opened = (number: string, held: number): void => work.opened(number, served, 'ada', TTL_MS, answerOf(held, 0))
  return { clock, work, counts, silent, looks, opened, answerOf, served }
}

test('work counts until it is closed, as of its last call, and once however often its open is said', (t) => {
  const { work, counts, opened, answerOf } = setUp(t)
  opened('a', 5)
  opened('a', 5)
  opened('b', 2)
  assert.deepEqual(counts(), [2, 7])
  work.heard('a', answerOf(3, 2))
  work.heard('unknown', answerOf(9, 0))
  assert.deepEqual(counts(), [2, 5])
  work.closed('a')
  work.closed('a')
  assert.deepEqual(counts(), [1, 2])
})

test('of silent work the store says whether it goes on; what is unknown, closed or has lapsed is over', async (t) => {
  const answers: readonly [[held: number, used: number, fault: HoldAnswer['fault']], counted: readonly number[], lapsed?: number][] = [
    [
      [4, 1, 'passed'],
      [1, 4],
    ],
    [
      [5, 0, undefined],
      [1, 5],
    ],
    [
      [0, 5, 'passed'],
      [1, 0],
    ],
    [[0, 0, undefined], [0, 0], 1],
    [
      [0, 5, 'closed'],
      [0, 0],
    ],
    [
      [0, 0, 'unknown'],
      [0, 0],
    ],
  ]
  for (const [answer, counted, lapsed = 0] of answers) {
    const { counts, silent, looks, opened, answerOf, served } = setUp(t)
    opened('a', 5)
    silent()
    assert.deepEqual(counts(), [1, 5], 'until the store has answered')
    looks.get('a')?.resolve(answerOf(...answer))
    await turns()
    assert.deepEqual([...counts(), served.holds.lapsed], [...counted, lapsed], String(answer))
    silent()
    assert.equal(looks.has('a'), counted[0] === 1)
  }
})

test('while the store is out work is believed to go on; with its policy it is over', async (t) => {
  const { counts, silent, looks, opened } = setUp(t)
  opened('a', 5)
  for (const [code, counted] of [
    ['OUTAGE', [1, 5]],
    ['CLOSED', [0, 0]],
  ] as const) {
    silent()
    looks.get('a')?.reject(new StoreError(code, 'of a test'))
    await turns()
    assert.deepEqual(counts(), counted)
  }
})

test('few looks are under way at once, and one that is opened anew meanwhile counts once', async (t) => {
  const { clock, work, counts, silent, looks, opened, answerOf } = setUp(t)
  for (let i = 0; i < 100; i++) opened(`${i}`, 1)
  silent()
  const [first, ...others] = looks.values()
  assert.deepEqual([looks.size, counts()], [64, [100, 100]])
  for (const each of others) each.resolve(answerOf(0, 0, 'unknown'))
  opened('0', 1)
  first?.resolve(answerOf(1, 0))
  await turns()
  assert.deepEqual(counts(), [37, 37])
  looks.clear()
  clock.advance(1_000)
  work.sweep()
  assert.equal(looks.size, 36)
})
