import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { type HeldQuestion, HeldScripts } from 'sluicegate-testkit/redis/held-scripts.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, fixedWindow, gcra, manualClock, type Policy, slidingLog, tokenBucket } from '../index.js'
import { scriptedStore } from '../redis/redis.js'
import { casStore } from '../store/cas.js'
import { memoryStore } from '../store-testing/memory-store.js'
import type { SharedLimiter } from './shared-limiter.js'
import type { SharedOptions } from './shared-options.js'

const SLOW = gcra({ limit: 1, window: '1s', burst: 10, name: 'p' })
const WINDOW = fixedWindow({ limit: 100, window: '1h', name: 'p' })
const NO_HASTE = 60_000

function over(policy: Policy, options: Omit<SharedOptions, 'store'> = {}) {
  const clock = manualClock()
  const store = new HeldScripts()
  const limiter = createLimiter(policy, { store: scriptedStore(store), timeout: NO_HASTE, ...options, clock })
  return { clock, store, limiter }
}

/** A number of callers that wait until their time. */
async function asleep({ store, limiter }: ReturnType<typeof over>, count: number, signal?: AbortSignal): Promise<Promise<unknown>[]> {
  const waits = Array.from({ length: count }, () => limiter.wait('k', { ...(signal && { signal }) }).catch(() => undefined))
  await turns()
  for (const [i, { answer }] of store.of('reserve').entries()) answer(i + 1, { debt: (11 + i) * 1_000_000, waitUs: 0 })
  await turns()
  return waits
}

/** Two takes of one turn are a lease, of which nine tokens stay. */
async function holdingNine(limiter: SharedLimiter, store: HeldScripts): Promise<void> {
  const taking = Promise.all([limiter.take('k'), limiter.take('k')])
  await turns()
  store.leases.shift()?.answer({ nowUs: 7, tokens: 11 })
  assert.ok((await taking).every(({ allowed }) => allowed))
}

function policyOf(question: HeldQuestion | undefined): Policy | undefined {
  return question?.requests[0]?.encoding.policy
}

for (const end of ['abort', 'close'] as const) {
  test(`after an update ${end} gives back what was booked in the numbers it was booked in`, async () => {
    const made = over(SLOW)
    const controller = new AbortController()
    const waits = await asleep(made, 3, controller.signal)
    made.limiter.update(gcra({ limit: 2, window: '1s', burst: 20 }))
    if (end === 'close') made.limiter.close()
    else controller.abort(new Error('enough'))
    await Promise.all(waits)
    await turns()
    const cancels = made.store.of('giveBack')
    assert.deepEqual(
      cancels.map(({ requests }) => requests[0]?.booking?.bookedUs),
      [3, 2, 1],
    )
    for (const cancel of cancels) assert.equal(policyOf(cancel)?.burst, 10)
  })
}

test('at an update waits give back what was booked in the numbers it was booked in, and book anew', async () => {
  const made = over(SLOW)
  const [waiting] = await asleep(made, 1)
  made.limiter.update(gcra({ limit: 2, window: '1s', burst: 20 }))
  await turns()
  const [cancel] = made.store.of('giveBack')
  assert.equal(policyOf(cancel)?.burst, 10)
  cancel?.answer()
  await turns()
  const reserve = made.store.of('reserve').at(-1)
  assert.equal(policyOf(reserve)?.burst, 20)
  reserve?.answer(2, { debt: 11_000_000, waitUs: 0 })
  await turns()
  made.clock.advance(1000)
  await turns()
  const [peek] = made.store.of('peek')
  assert.equal(policyOf(peek)?.burst, 20)
  peek?.answer(9, { blockedUs: 5_000_000, done: false })
  await turns()
  made.store.of('giveBack').at(-1)?.answer()
  const { allowed, retryAfterMs, limit } = (await waiting) as Awaited<ReturnType<typeof made.limiter.wait>>
  assert.deepEqual([allowed, retryAfterMs, limit], [false, 5000, 2])
})

test('a waiter whose key is banned is denied, even if its booking cannot be returned', async () => {
  for (const outage of ['local', 'open', 'closed'] as const) {
    const made = over(SLOW, { outage })
    const [waiting] = await asleep(made, 1)
    made.clock.advance(1000)
    await turns()
    made.store.of('peek')[0]?.answer(9, { blockedUs: 5_000_000, done: false })
    await turns()
    made.store.of('giveBack')[0]?.fail(new Error('ECONNRESET'))
    const { allowed, retryAfterMs, source } = (await waiting) as Awaited<ReturnType<typeof made.limiter.wait>>
    assert.deepEqual([outage, allowed, retryAfterMs, source], [outage, false, 5000, 'store'])
    made.limiter.close()
  }
})

test('what is no key is misuse also while others wait in a queue, and changes nothing', async () => {
  for (const mode of ['exact', 'leased'] as const) {
    const { store, limiter } = over(SLOW, { mode })
    const waiting = assert.rejects(limiter.wait('k'), { code: 'CLOSED' })
    await turns()
    // The first of a queue asks once more.
    for (const i of [0, 1]) {
      store.of('reserve')[i]?.answer(1, { done: false, blockedUs: 5_000_000 })
      await turns()
    }
    const { length } = store.asked
    const cycle: unknown[] = []
    cycle.push(cycle)
    for (const key of [10n, [10n], cycle, 5, null]) {
      const wrong = key as unknown as string
      const misuse = { name: 'PolicyError', code: 'KEY_INVALID', option: 'key' }
      await assert.rejects(async () => limiter.take(wrong), misuse)
      await assert.rejects(limiter.wait(wrong), misuse)
      await assert.rejects(limiter.reserve(wrong, 1), misuse)
    }
    assert.equal(store.asked.length, length)
    limiter.close()
    await waiting
  }
})

test('unwanted bookings of allOf with several keys wait for pending ones, and are returned newest first', async () => {
  const policy = allOf([slidingLog({ limit: 50, window: '1h' }), slidingLog({ limit: 90, window: '1h' })])
  const { store, limiter } = over(policy, { mode: 'exact' })
  const controller = new AbortController()
  const waits = [1, 2, 3].map(() => limiter.wait(['a', 'b'], { signal: controller.signal }).catch(() => undefined))
  await turns()
  const [first, second, third] = store.of('reserve')
  controller.abort(new Error('enough'))
  await Promise.all(waits)
  first?.answer(1)
  second?.answer(2)
  await turns()
  assert.equal(store.of('giveBack').length, 0)
  third?.answer(3)
  await turns()
  assert.deepEqual(
    store.of('giveBack').map(({ requests }) => requests.map(({ key, booking }) => `${key} ${booking?.bookedUs}`)),
    [3, 2, 1].map((us) => [`a ${us}`, `b ${us}`]),
  )
})

test('a thousand waits keep no process alive after the limiter and its client close', async () => {
  const made = over(SLOW)
  const waits = await asleep(made, 1000)
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const idle = timers()
  made.limiter.close()
  await Promise.all(waits)
  await turns()
  const cancels = made.store.of('giveBack')
  assert.equal(cancels.length, 128)
  for (const { fail } of cancels) fail(new Error('the client is closed'))
  await turns()
  assert.equal(timers(), idle)
  assert.equal(made.store.of('giveBack').length, 128)
})

test('a late booking whose return is never answered delays no caller for longer than a timeout', async () => {
  const { clock, store, limiter } = over(SLOW, { timeout: 100, outage: 'closed' })
  const late = [1, 2].map(() => limiter.wait('k'))
  await turns()
  clock.advance(100)
  await Promise.all(late)
  for (const [i, { answer }] of store.of('reserve').entries()) answer(i + 1)
  await turns()
  assert.equal(store.of('giveBack').length, 1)
  assert.equal(limiter.stats().timeouts, 2)
  clock.advance(100)
  await turns()
  assert.equal(limiter.stats().timeouts, 3)
})

test('an update gives back at once what is held under the policy of before', async () => {
  const { clock, store, limiter } = over(WINDOW)
  await holdingNine(limiter, store)
  limiter.update(fixedWindow({ limit: 200, window: '1h' }))
  limiter.close()
  clock.advance(0)
  await turns()
  const [cancel] = store.of('giveBack')
  assert.deepEqual([policyOf(cancel)?.limit, cancel?.requests[0]?.tokens, cancel?.requests[0]?.booking?.atUs], [100, 9, 7])
})

test('an update that is refused changes nothing, and what is held stays', async () => {
  const { store, limiter } = over(WINDOW)
  await holdingNine(limiter, store)
  assert.throws(() => limiter.update(SLOW), { code: 'ALGORITHM_CHANGE' })
  const next = limiter.take('k')
  assert.ok(!(next instanceof Promise) && next.allowed)
})

test('tokens that expire during a reset are not returned: the return would reduce later charges', async () => {
  const { clock, store, limiter } = over(WINDOW)
  await holdingNine(limiter, store)
  const resetting = limiter.reset('k')
  await turns()
  clock.advance(1000)
  await turns()
  assert.deepEqual(store.of('giveBack'), [])
  store.of('reset')[0]?.answer()
  await resetting
  clock.advance(1000)
  limiter.close()
  await turns()
  assert.deepEqual(store.of('giveBack'), [])
})

const sources = new URL('../../src/', import.meta.url)

function sorted(names: Iterable<string | undefined>): readonly (string | undefined)[] {
  return [...new Set(names)].sort()
}

test('the table of operations lists the verbs that there are', () => {
  const text = readFileSync(new URL('shared/backend.ts', sources), 'utf8')
  const rows = [...text.matchAll(/^ \* \| (`[^|]*`) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, verb]) => verb),
  )
  const [, union = ''] = /export type Operation =([\s\S]*?)\/\*\* What came of/.exec(text) ?? []
  const verbs = [...union.matchAll(/verb: ((?:'\w+'(?: \| )?)+)/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/'(\w+)'/g)].map(([, verb]) => verb),
  )
  assert.ok(verbs.length > 10)
  assert.deepEqual(sorted(rows), sorted(verbs))
})

test('the files that the declarations of WebAssembly name are there', () => {
  const [line = ''] = readFileSync(new URL('webassembly.d.ts', sources), 'utf8').split('\n')
  const names = [...line.matchAll(/[\w-]+\.ts/g)].map(([name]) => name)
  assert.equal(names.length, 2)
  for (const name of names) assert.ok(existsSync(new URL(`memory/${name}`, sources)), name)
})

describe('reordered all of', () => {
  const SMALL = tokenBucket({ limit: 50, window: '1d', name: 'small' })
  const LARGE = tokenBucket({ limit: 1000, window: '1d', name: 'large' })
  const WINDOW = fixedWindow({ limit: 70, window: '1d', name: 'window' })

  const clock = manualClock(1_760_000_000_000)
  const MAKERS = {
    memory: (policy: Policy) => createLimiter(policy, { clock }),
    'a store': (policy: Policy) => createLimiter(policy, { store: casStore(memoryStore({ clock })), clock, mode: 'exact' }),
    'leases of a store': (policy: Policy) => createLimiter(policy, { store: casStore(memoryStore({ clock })), clock, mode: 'leased' }),
  }

  for (const [where, make] of Object.entries(MAKERS)) {
    test(`in ${where} policies of allOf in another order keep what was spent by name, and what is cancelled comes back there`, async () => {
      const limiter = make(allOf([SMALL, LARGE, WINDOW], { name: 'all' }))
      const left = async (key: string | string[]) =>
        Object.fromEntries(((await limiter.peek(key, 1)).parts ?? []).map(({ policy, remaining }) => [policy, remaining]))
      await limiter.take(['s', 'l', 'w'], 30)
      const booked = await limiter.reserve(['s', 'l', 'w'], 10)
      limiter.update(allOf([WINDOW, SMALL, LARGE], { name: 'all' }))
      assert.deepEqual(await left(['w', 's', 'l']), { window: 30, small: 10, large: 960 })
      assert.equal((await limiter.take(['w', 's', 'l'], 11)).policy, 'small')
      await booked.cancel()
      if (where === 'memory') assert.deepEqual(await left(['w', 's', 'l']), { window: 40, small: 20, large: 970 })
      limiter.close()
    })
  }
})
