import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { turns } from 'sluicegate-testkit/turns.js'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, manualClock, tokenBucket } from '../index.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { CallsTogether } from './calls-together.js'
import { casStore, casStoreOf } from './cas.js'
import type { CasStep, CasStore } from './cas-store.js'
import { KnownStates } from './known-states.js'
import { StepsTogether } from './steps-together.js'
import { TimedStore } from './timed-store.js'

/** Calls that are answered when the test says so. */
function held() {
  const sent: { readonly calls: readonly string[]; answer(error?: Error): void }[] = []
  const together = new CallsTogether<string, string>(
    (calls) =>
      new Promise((resolve, reject) => {
        const answer = (error?: Error): void => (error === undefined ? resolve(calls.map((call) => `${call}!`)) : reject(error))
        sent.push({ calls, answer })
      }),
    (call) => call[0] as string,
  )
  return { sent, together, shape: () => sent.map(({ calls }) => calls.join(' ')) }
}

test('a call goes at once; those of a turn, and those that come while others are under way, go together', async () => {
  const { sent, together, shape } = held()
  const answers: Promise<string>[] = []
  for (const calls of ['a', 'bc', 'd', 'e', 'f', 'g']) {
    answers.push(...[...calls].map((call) => together.ask(call, undefined)))
    await turns()
  }
  assert.deepEqual(shape(), ['a', 'b c', 'd', 'e'])
  for (let i = 0; i < 5; i++) {
    sent[i]?.answer()
    await turns()
  }
  assert.deepEqual(shape(), ['a', 'b c', 'd', 'e', 'f g'])
  assert.deepEqual(await Promise.all(answers), ['a!', 'b!', 'c!', 'd!', 'e!', 'f!', 'g!'])
})

test('two calls for one key do not go together, and one that was given up does not go', async () => {
  const { sent, together, shape } = held()
  const controller = new AbortController()
  const answers = [together.ask('a1', undefined), together.ask('a2', undefined), together.ask('b', controller.signal)]
  controller.abort()
  await assert.rejects(answers[2] as Promise<string>)
  await turns()
  assert.deepEqual(shape(), ['a1', 'a2'])
  sent[0]?.answer(new Error('lost'))
  sent[1]?.answer()
  await assert.rejects(answers[0] as Promise<string>, /lost/)
  assert.equal(await answers[1], 'a2!')
})

/** Of the smallest states: larger ones fill their memory with fewer. */
const KEYS = 90_000

test('the states that are kept take bounded memory, and the keys used last are among them', () => {
  const known = new KnownStates()
  const state = (size: number) => ({ value: new Uint8Array(size), version: 1, nowUs: 0 })
  for (const size of [0, 150, 4096]) {
    const value = state(size)
    const keys = size === 0 ? KEYS : KEYS / 3
    for (let i = 0; i < keys; i++) known.keep(`key ${i}`, value)
    let kept = 0
    for (let i = 0; i < keys; i++) if (known.of(`key ${i}`) !== undefined) kept++
    assert.ok(kept > 1500 && kept * (size + 250) < 17 * 1024 * 1024, `${kept} of ${size} bytes`)
    assert.ok(known.of(`key ${keys - 1}`) !== undefined)
  }
  known.keep('large', state(4097))
  assert.equal(known.of('large'), undefined)
})

describe('new keys', () => {
  const KEYS = 200
  const POLICY = fixedWindow({ limit: 2, window: '1d', name: 'day' })
  const OPTIONS = { mode: 'exact', outage: 'closed' } as const

  function counting(store: ReturnType<typeof memoryStore>): CasStore & { reads: number; swaps: number } {
    const counted = { name: store.name, reads: 0, swaps: 0 }
    return Object.assign(counted, {
      read: (key: string) => {
        counted.reads++
        return store.read(key)
      },
      swap: (swap: Parameters<CasStore['swap']>[0]) => {
        counted.swaps++
        return store.swap(swap)
      },
    })
  }

  test('where most keys are new to the store, one more is written without a look; where they are not, it is read first', async () => {
    const clock = manualClock(1_700_000_000_000)
    const store = memoryStore({ clock })
    const [first, second] = [counting(store), counting(store)]
    const limiters = [first, second].map((each) =>
      createLimiter(POLICY, { store: casStoreOf(each, {}, Number.POSITIVE_INFINITY), clock, ...OPTIONS }),
    )
    const passed: number[] = []
    for (const limiter of limiters) {
      let allowed = 0
      for (let i = 0; i < KEYS; i++) if ((await limiter.take(`key ${i}`)).allowed) allowed++
      passed.push(allowed)
    }
    assert.deepEqual(passed, [KEYS, KEYS])
    assert.ok(first.reads <= 20 && first.swaps === KEYS, `${first.reads} reads, ${first.swaps} swaps`)
    assert.deepEqual([second.reads, second.swaps], [KEYS, KEYS])
    // The first takes these keys for new; what they owe counts all the same.
    for (let i = KEYS; i < 2 * KEYS; i++) for (const cost of [1, 1]) await limiters[1]?.take(`key ${i}`, cost)
    for (let i = KEYS; i < 2 * KEYS; i++) assert.equal((await limiters[0]?.take(`key ${i}`))?.allowed, false)
    assert.equal(first.swaps < KEYS + 20, true, 'it has noticed that the store knows them')
    for (const limiter of limiters) limiter.close()
  })
})

/** A store that computes, of which every step passes. @param groups of each call so far */
function passing(groups: number[]): CasStore {
  const memory = memoryStore()
  return {
    name: 'passing',
    read: (key) => memory.read(key),
    swap: (swap) => memory.swap(swap),
    step: async (asked) => {
      groups.push(asked.length)
      await new Promise(setImmediate)
      return asked.map((steps) => steps.map(passed))
    },
  }
}

function passed({ times, unit, pace, cap, amount }: CasStep) {
  const nowUs = Date.now() * 1000
  return { done: times, debt: amount, nowUs, state: { at: nowUs, rest: amount, unit, pace, cap, ahead: false, blocked: 0 } }
}

test('callers that were answered together ask together again, however many microtasks each needs, and one alone waits for no turn', async () => {
  const groups: number[] = []
  const policy = tokenBucket({ limit: 1000, window: '1s', name: 'together' })
  const limiter = createLimiter(policy, { store: casStore(passing(groups)), mode: 'exact', outage: 'closed', timeout: 5000 })
  const caller = async (key: string, hops: number): Promise<void> => {
    for (let take = 0; take < 20; take++) {
      await limiter.take(key)
      for (let hop = 0; hop < hops; hop++) await undefined
    }
  }
  await Promise.all(Array.from({ length: 16 }, (_, i) => caller(`key ${i}`, 3 * i)))
  assert.ok(groups.length <= 25, `${groups.length} calls for 20 of each of 16 callers: ${groups}`)
  await limiter.take('alone')
  groups.length = 0
  const alone = limiter.take('alone')
  for (let hop = 0; hop < 20; hop++) await undefined
  assert.deepEqual(groups, [1])
  await alone
  limiter.close()
})

test('a key that others kept locked is asked for alone, and with others again a second after nobody waits for it', async () => {
  const clock = manualClock(1_700_000_000_000)
  const groups: number[] = []
  let isLocked = true
  const own = passing([])
  const store: CasStore = {
    ...own,
    step: async (asked, signal) => {
      groups.push(asked.length)
      const outcomes = (await own.step?.(asked, signal)) ?? []
      return outcomes.map((outcome, i) => (isLocked && asked[i]?.[0]?.key === 'locked' ? 'busy' : outcome))
    },
  }
  const calls = new StepsTogether(new TimedStore(store, clock, 5000))
  const ask = (key: string, signal?: AbortSignal) => calls.ask([takeOf(key)], () => undefined, signal)
  const found = async (): Promise<void> => {
    isLocked = true
    groups.length = 0
    const waiting = new AbortController()
    const givenUp = assert.rejects(ask('locked', waiting.signal), { code: 'OUTAGE' })
    while (groups.length < 3) await new Promise(setImmediate)
    waiting.abort()
    await givenUp
    isLocked = false
    groups.length = 0
  }
  for (const [laterMs, sent] of [
    [999, [1, 1]],
    [1_000, [2]],
  ] as const) {
    await found()
    clock.advance(laterMs)
    await Promise.all([ask('locked'), ask('free')])
    assert.deepEqual(groups, sent)
  }
})

function takeOf(key: string): CasStep {
  const bounds = { lent: 0, amount: 1, times: 1, bound: 0, booking: [0, 0, 0] as const, from: undefined }
  return { key, verb: 'take', unit: 1_000_000, pace: 1, cap: 10_000_000, ...bounds }
}

test('a process that paused after lost swaps goes on from the state of that moment, however busy its rival is', async () => {
  const clock = manualClock(1_700_000_000_000)
  const memory = memoryStore({ clock })
  const policy = fixedWindow({ limit: 1000, window: '1d', name: 'day' })
  const rival = createLimiter(policy, { store: casStore(memory), clock, mode: 'exact' })
  let [swaps, spoiled] = [0, 2]
  const store: CasStore = {
    name: 'contended',
    read: (key) => memory.read(key),
    swap: async (swap) => {
      swaps++
      if (spoiled-- > 0) await rival.take('k')
      return memory.swap(swap)
    },
  }
  const limiter = createLimiter(policy, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 10_000 })
  let decided = false
  const take = Promise.resolve(limiter.take('k')).finally(() => {
    decided = true
  })
  for (let ms = 0; ms < 200 && !decided; ms++) {
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    // Its rival changes the key again and again while it pauses.
    if (spoiled <= 0 && swaps === 2) await rival.take('k')
    clock.advance(1)
  }
  assert.equal((await take).source, 'store')
  assert.equal(swaps, 3, 'the first after the pause is made')
  for (const each of [limiter, rival]) each.close()
})
