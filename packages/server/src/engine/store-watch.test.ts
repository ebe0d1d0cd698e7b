import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { manualClock } from 'sluicegate'
import { type StoreNews, StoreRefusal, StoreWatch } from './store-watch.js'

type Answer = 'good' | 'refused' | 'part' | 'silent' | 'lost'

/** A store that answers as a test says, and a watch over it on a clock by hand. */
function watched() {
  const clock = manualClock(1_000_000)
  const news: StoreNews[] = []
  const store = {
    answer: 'good' as Answer,
    mend: undefined as string | undefined,
    looks: 0,
    renewedMs: [] as number[],
    look(): Promise<void> {
      store.looks++
      if (store.answer === 'good') return Promise.resolve()
      if (store.answer === 'silent') return new Promise(() => undefined)
      return Promise.reject(
        store.answer === 'lost'
          ? new Error('lost')
          : new StoreRefusal('READONLY', { isPartial: store.answer === 'part', mend: store.mend }),
      )
    },
    renew: () => store.renewedMs.push(clock.nowMs()) > 0,
  }
  const watch = new StoreWatch(
    store,
    (said) => news.push(said),
    clock,
    () => 0,
  )
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= 50) {
      clock.advance(50)
      for (let i = 0; i < 4; i++) await turn()
    }
  }
  return { store, watch, news, pass, clock }
}

const kinds = (news: readonly StoreNews[]): string[] => news.map((said) => (said.isReachable ? 'sound' : said.kind))

for (const answer of ['refused', 'silent', 'lost'] as const) {
  test(`a store that is ${answer} is said to be once a minute, and connections are replaced until it is sound`, async () => {
    const { store, watch, news, pass, clock } = watched()
    const started = watch.start(2_000)
    await pass(100)
    await started
    assert.ok(watch.isSound)
    store.answer = answer
    const fromMs = clock.nowMs()
    await pass(4_000)
    assert.equal(watch.isSound, false)
    const [first = Number.POSITIVE_INFINITY] = store.renewedMs
    assert.ok(first - fromMs <= 3_500, `after ${first - fromMs} ms`)
    await pass(96_000)
    assert.deepEqual(kinds(news), [answer, answer])
    const pausesMs = store.renewedMs.slice(1).map((ms, i) => ms - (store.renewedMs[i] as number))
    assert.ok(Math.max(...pausesMs) <= 4_500 && Math.min(...pausesMs.slice(2)) >= 3_000, pausesMs.join())
    store.answer = 'good'
    await pass(1_500)
    assert.ok(watch.isSound && watch.fault === undefined && watch.lookMs !== undefined)
    assert.equal(kinds(news).at(-1), 'sound')
    const { length } = store.renewedMs
    await pass(5_000)
    assert.equal(store.renewedMs.length, length, 'nothing is replaced while it is sound')
    watch.end()
    const { looks } = store
    await pass(5_000)
    assert.equal(store.looks, looks)
  })
}

test('an outage that goes on for another reason says that at once, each reason once a minute', async () => {
  const { store, watch, news, pass } = watched()
  const started = watch.start(2_000)
  await pass(100)
  await started
  store.answer = 'refused'
  for (const mend of ['promote it', 'make room', 'promote it', 'make room']) {
    store.mend = mend
    await pass(5_000)
  }
  const said = news.map((each) => (each.isReachable ? 'sound' : (each.error as StoreRefusal).mend))
  assert.deepEqual(said, ['promote it', 'make room'])
  watch.end()
})

test('while a part of a store refuses, the connections to the others are replaced ever more seldom', async () => {
  const { store, watch, pass } = watched()
  store.answer = 'part'
  const started = watch.start(1_000)
  await pass(61_000)
  await started
  assert.ok(store.renewedMs.length <= 7, String(store.renewedMs.length))
  watch.end()
})

test('a lost connection is known at once, and an open one is looked at at once', async () => {
  const { store, watch, pass } = watched()
  const started = watch.start(1_000)
  await pass(100)
  await started
  watch.lost(new Error('reset'))
  assert.equal(watch.isSound, false)
  const { looks } = store
  watch.opened()
  await pass(50)
  assert.deepEqual([store.looks, watch.isSound], [looks + 1, true])
  watch.end()
  watch.lost(new Error('reset'))
  assert.ok(watch.isSound, 'nothing counts after its end')
})

test('a look that waits in its turn, while others are answered, is no silence', async () => {
  const { store, watch, news, pass } = watched()
  Object.assign(store, { hasAnsweredSince: () => true })
  store.answer = 'silent'
  const started = watch.start(2_000)
  await pass(10_000)
  await started
  assert.deepEqual([news, store.renewedMs], [[], []])
  watch.end()
})
