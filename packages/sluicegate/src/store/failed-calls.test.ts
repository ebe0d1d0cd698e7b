import assert from 'node:assert/strict'
import { test } from 'node:test'
import { turns } from 'sluicegate-testkit/turns.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, manualClock } from '../index.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { casStore } from './cas.js'
import type { CasStore } from './cas-store.js'

const POLICY = fixedWindow({ limit: 1000, window: '1d', name: 'day' })
const CALLERS = 50

/** A store whose calls fail at once, or are never answered. */
function failing(how: 'fails' | 'is silent'): CasStore & { calls: number } {
  const store = {
    name: 'failing',
    calls: 0,
    read: () => call(),
    swap: () => call(),
  }
  const call = (): Promise<never> => {
    store.calls++
    return how === 'fails' ? Promise.reject(new Error('the connection broke')) : new Promise(() => undefined)
  }
  return store
}

test('many callers that one failed call was for are one failure: the circuit stays closed', async () => {
  const clock = manualClock(1_700_000_000_000)
  const store = failing('fails')
  const limiter = createLimiter(POLICY, { store: casStore(store), clock, mode: 'exact', outage: 'closed' })
  const burst = async (): Promise<void> => {
    const decisions = await Promise.all(Array.from({ length: CALLERS }, () => limiter.take('k')))
    assert.ok(decisions.every(({ source }) => source === 'outage'))
  }
  for (const bursts of [1, 2]) {
    await burst()
    assert.deepEqual([store.calls, limiter.stats().openCircuits], [bursts, 0])
  }
  await burst()
  assert.equal(limiter.stats().openCircuits, 1, 'the third failure in a row opens it')
  limiter.close()
})

test('callers that time out together with the call that they wait for, sent or not, are one failure', async () => {
  const clock = manualClock(1_700_000_000_000)
  const store = failing('is silent')
  const limiter = createLimiter(POLICY, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 100 })
  const takes = [limiter.take('k')]
  await turns(3)
  for (let i = 1; i < CALLERS; i++) takes.push(limiter.take('k'))
  await turns(3)
  assert.equal(store.calls, 1)
  clock.advance(101)
  assert.ok((await Promise.all(takes)).every(({ source }) => source === 'outage'))
  assert.equal(limiter.stats().openCircuits, 0)
  const others = ['a', 'b'].map((key) => limiter.take(key))
  await turns(3)
  clock.advance(101)
  await Promise.all(others)
  assert.equal(limiter.stats().openCircuits, 1, 'calls of other keys are failures by themselves')
  limiter.close()
})

test('bursts that fail twice are answered as soon as the store answers again', async () => {
  const clock = manualClock(1_700_000_000_000)
  const memory = memoryStore({ clock })
  let left = 2
  const broken = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    if (left-- > 0) throw new Error('the connection broke')
    return call()
  }
  const store: CasStore = {
    name: 'recovering',
    read: (key) => broken(() => memory.read(key)),
    swap: (swap) => broken(() => memory.swap(swap)),
  }
  const limiter = createLimiter(POLICY, { store: casStore(store), clock, mode: 'exact', outage: 'closed' })
  const sources: string[] = []
  for (let i = 0; i < 3; i++) sources.push(...(await Promise.all([limiter.take('k'), limiter.take('k')])).map(({ source }) => source))
  assert.deepEqual(sources, ['outage', 'outage', 'outage', 'outage', 'store', 'store'])
  limiter.close()
})

/** A store far away in which others change the key `hot` each time before a swap comes, and keep those that begin with `locked`. */
function contended(clock: ReturnType<typeof manualClock>) {
  const memory = memoryStore({ clock })
  const far = { isSilent: false }
  const later = (): Promise<void> => new Promise((resolve) => far.isSilent || clock.after?.(5, resolve))
  let versions = 0
  const store: CasStore = {
    name: 'contended',
    read: async (key) => {
      await later()
      return memory.read(key)
    },
    swap: async (swap) => {
      await later()
      if (!/:(hot|locked\d?)$/.test(swap.key)) return memory.swap(swap)
      const state = await memory.read(swap.key)
      return { swapped: false, state: { ...state, version: swap.key.endsWith('hot') ? ++versions : swap.version } }
    },
  }
  const limiter = createLimiter(POLICY, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 100 })
  const sourceOf = async (key: string): Promise<string> => {
    let source: string | undefined
    void Promise.resolve(limiter.take(key)).then((decision) => {
      source = decision.source
    })
    while (source === undefined) {
      await turns(4)
      clock.advance(1)
    }
    return source
  }
  return Object.assign(far, { limiter, sourceOf })
}

for (const key of ['hot', 'locked']) {
  test(`a key that is ${key} ends by the timeout and opens no circuit; a store that falls silent does`, async () => {
    const clock = manualClock(1_700_000_000_000)
    const far = contended(clock)
    const { limiter, sourceOf } = far
    for (let i = 0; i < 5; i++) assert.equal(await sourceOf(key), 'outage')
    assert.deepEqual([await sourceOf('other'), limiter.stats().openCircuits], ['store', 0])
    far.isSilent = true
    for (let i = 0; i < 8; i++) await sourceOf(key)
    assert.equal(limiter.stats().openCircuits, 1)
    far.isSilent = false
    clock.advance(5000)
    assert.equal(await sourceOf(key), 'outage', 'a probe')
    assert.equal(await sourceOf('other'), 'store')
    limiter.close()
  })
}

test('a store of which every key is locked is out, and the next probe of a key that is free ends it', async () => {
  const clock = manualClock(1_700_000_000_000)
  const { limiter, sourceOf } = contended(clock)
  for (let i = 0; i < 6; i++) await sourceOf(`locked${i % 3}`)
  assert.equal(limiter.stats().openCircuits, 1)
  clock.advance(101)
  for (let i = 0; i < 3; i++) await sourceOf(`locked${i}`)
  assert.equal(await sourceOf('other'), 'store', 'probes of locked keys make the pause no longer')
  limiter.close()
})

test('a store that can be read but not written is an outage, with its own error and after few calls; a denial is still its own', async () => {
  const clock = manualClock(1_700_000_000_000)
  const memory = memoryStore({ clock })
  let [isFull, calls] = [false, 0]
  const swap: CasStore['swap'] = async (given) => {
    calls++
    if (isFull) throw new Error('no space left')
    return memory.swap(given)
  }
  const store: CasStore = { name: 'full', read: (key) => memory.read(key), swap }
  const limiter = createLimiter(fixedWindow({ limit: 1, window: '1d', name: 'one' }), {
    store: casStore(store),
    clock,
    mode: 'exact',
    outage: 'closed',
  })
  assert.equal((await limiter.take('taken')).allowed, true)
  isFull = true
  calls = 0
  assert.equal((await limiter.take('new')).source, 'outage')
  assert.ok(calls <= 3, `${calls} swaps`)
  const denied = await limiter.take('taken')
  assert.deepEqual([denied.allowed, denied.source], [false, 'store'])
  await assert.rejects(Promise.resolve(limiter.penalize('new', 1)), { code: 'OUTAGE', message: /no space left/ })
  isFull = false
  assert.deepEqual((await limiter.take('new')).source, 'store')
  limiter.close()
})
