import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random, shortOrLong } from 'sluicegate-testkit'
import type { Awaitable } from '../awaitable.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, type Decision, fixedWindow, manualClock, slidingLog, tokenBucket } from '../index.js'
import { memoryStore } from '../store-testing/memory-store.js'
import { casStore } from './cas.js'
import type { CasStore, CasSwap } from './cas-store.js'

const START_MS = 1_700_000_000_000

/** A store some milliseconds away, which counts what is asked of it. */
function distant(clock: ReturnType<typeof manualClock>, memory: ReturnType<typeof memoryStore>, wayMs = 2) {
  const way = (): Promise<void> => new Promise((resolve) => clock.after?.(wayMs, resolve))
  const counts = { swaps: 0, lost: 0, mostKeys: 0 }
  const made = async <Outcome extends { readonly swapped: boolean }>(swap: () => Promise<Outcome>, keys: number): Promise<Outcome> => {
    await way()
    const outcome = await swap()
    counts.swaps++
    counts.mostKeys = Math.max(counts.mostKeys, keys)
    if (!outcome.swapped) counts.lost++
    await way()
    return outcome
  }
  const store: CasStore = {
    name: 'distant',
    read: async (key) => {
      await way()
      const state = await memory.read(key)
      await way()
      return state
    },
    swap: (swap) => made(() => memory.swap(swap), 1),
    swapAll: (swaps: readonly CasSwap[]) => made(() => memory.swapAll(swaps), swaps.length),
  }
  return { store, counts }
}

async function passing(clock: ReturnType<typeof manualClock>, isOver: () => boolean, mostMs: number): Promise<number> {
  let ms = 0
  for (; ms < mostMs && !isOver(); ms++) {
    for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate)
    clock.advance(1)
  }
  return ms
}

const tenant = slidingLog({ limit: 5000, window: '1d', name: 'tenant' })
const user = tokenBucket({ limit: 1000, window: '1s', name: 'user' })

test('calls of one process for users of one tenant never race each other for the row of the tenant, and go together', async () => {
  const clock = manualClock(START_MS)
  const { store, counts } = distant(clock, memoryStore({ clock }))
  const both = createLimiter(allOf([user, tenant]), { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 1000 })
  const alone = createLimiter(tenant, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 1000 })
  const decisions: Decision[] = []
  const caller = async (id: number): Promise<void> => {
    for (let i = 0; i < 10; i++) decisions.push(await both.take([`user ${id}`, 'acme']))
  }
  const callers = Array.from({ length: 60 }, (_, id) => caller(id))
  const ms = await passing(clock, () => decisions.length === 600, 2000)
  await Promise.all(callers)
  assert.ok(decisions.every(({ allowed, source }) => allowed && source === 'store'))
  assert.equal(counts.lost, 0)
  assert.ok(counts.mostKeys > 1 && counts.mostKeys <= 32, `${counts.mostKeys} keys in a swap`)
  assert.ok(600 / (ms / 1000) > 2000, `${600 / (ms / 1000)} a second`)
  const left = alone.peek('acme')
  await passing(clock, () => false, 10)
  assert.equal((await left).remaining, 5000 - 600)
  for (const each of [both, alone]) each.close()
})

test('lists of keys that overlap in any order all come to their turn', async () => {
  const clock = manualClock(START_MS)
  const { store, counts } = distant(clock, memoryStore({ clock }))
  const policy = allOf([0, 1, 2].map((i) => fixedWindow({ limit: 10_000, window: '1d', name: `part ${i}` })))
  const limiter = createLimiter(policy, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeout: 1000 })
  let over = 0
  const takes = Array.from({ length: 300 }, (_, i) =>
    Promise.resolve(limiter.take([`a${i % 7}`, `b${i % 5}`, `c${i % 3}`])).then((decision) => {
      over++
      return decision
    }),
  )
  await passing(clock, () => over === 300, 900)
  assert.ok((await Promise.all(takes)).every(({ allowed }) => allowed))
  assert.equal(counts.lost, 0)
  limiter.close()
})

interface Writer {
  readonly callers: number
  /** Of its store, one way. */
  readonly wayMs: number
  /** Starts after so long. */
  readonly afterMs?: number
}

/**
 * Processes of which each has its own limiter, on one key of a store that only swaps. What they leave to chance goes by the seed.
 *
 * @param burst above 200 the rate is leased, where the mode says so
 */
async function contended(mode: 'exact' | 'leased', burst: number, writers: readonly Writer[], ms: number, seed: number, timeout = 1000) {
  const { random } = Math
  const chance = new Random(seed)
  Math.random = () => chance.fraction()
  const clock = manualClock(START_MS)
  const memory = memoryStore({ clock })
  const policy = tokenBucket({ limit: 2000, window: '1s', burst, name: 'hot' })
  const admitted = writers.map(() => 0)
  const tookMs: number[] = []
  let undecided = 0
  let isOver = false
  const caller = async (limiter: { take(key: string): Awaitable<Decision> }, i: number): Promise<void> => {
    while (!isOver) {
      const askedMs = clock.nowMs()
      const { allowed, source, retryAfterMs } = await limiter.take('k')
      tookMs.push(clock.nowMs() - askedMs)
      if (allowed) admitted[i] = (admitted[i] as number) + 1
      if (source === 'outage') undecided++
      if (!allowed || clock.nowMs() === askedMs) await new Promise<void>((resolve) => clock.after?.(Math.max(1, retryAfterMs), resolve))
    }
  }
  const limiters = writers.map(({ wayMs }) =>
    createLimiter(policy, { store: casStore(distant(clock, memory, wayMs).store), clock, mode, outage: 'closed', timeout }),
  )
  const all = limiters.flatMap((limiter, i) => {
    const { callers, afterMs = 0 } = writers[i] as Writer
    const start = new Promise<void>((resolve) => clock.after?.(afterMs, resolve))
    return Array.from({ length: callers }, () => start.then(() => caller(limiter, i)))
  })
  await passing(clock, () => false, ms)
  const sum = admitted.reduce((sum, each) => sum + each, 0)
  isOver = true
  await passing(clock, () => false, 1500)
  await Promise.all(all)
  for (const limiter of limiters) limiter.close()
  Math.random = random
  return {
    seed,
    undecided,
    used: sum / (burst + (2000 * ms) / 1000),
    jain: sum ** 2 / (writers.length * admitted.reduce((sum, each) => sum + each ** 2, 0)),
    p99Ms: tookMs.sort((a, b) => a - b)[Math.floor(tookMs.length * 0.99)] as number,
    admitted,
  }
}

const SEEDS = Array.from({ length: shortOrLong(1, 6) }, (_, i) => i + 10)

for (const [mode, burst, mostMs] of [
  ['exact', 100, 90],
  ['leased', 1000, 45],
] as const) {
  test(`eight processes of 32 callers on one key that can only be swapped, ${mode}: none is rejected, and all get their share in time`, async (t) => {
    const writers = Array.from({ length: 8 }, (_, i) => ({ callers: 32, wayMs: 1 + (i % 3) / 2 }))
    for (const seed of SEEDS) {
      const found = await contended(mode, burst, writers, shortOrLong(4000, 10_000), seed)
      const shown = JSON.stringify(found)
      t.diagnostic(shown)
      assert.equal(found.undecided, 0, shown)
      assert.ok(found.used >= 0.97 && found.used <= 1, shown)
      assert.ok(found.jain >= 0.9, shown)
      assert.ok(found.p99Ms <= mostMs, shown)
    }
  })
}

test('a process that comes to a key which a nearer one writes all the time gets its turn', async () => {
  for (const callers of [1, 32]) {
    const writers = [1, 1.5, 2.5].map((wayMs, i) => ({ callers, wayMs, afterMs: 300 * i }))
    const { undecided, admitted } = await contended('exact', 1000, writers, 2000, 1)
    assert.equal(undecided, 0, `${callers} callers`)
    assert.ok(
      admitted.every((each) => each > 20),
      `${callers} callers: ${admitted}`,
    )
  }
})

test('who leaves a key to others makes none of its own calls wait for longer than the timeout, however far away the store is', async () => {
  for (const [wayMs, processes] of [
    [2, 3],
    [20, 1],
  ] as const) {
    const writers = Array.from({ length: processes }, () => ({ callers: 16, wayMs }))
    const { undecided } = await contended('exact', 1000, writers, 2000, 1, 100)
    assert.equal(undecided, 0, `${processes} processes, ${wayMs} ms away`)
  }
})

test('processes take turns at a key whose answers take a third of the timeout, and nearly all of their calls are decided', async () => {
  for (const [processes, answerMs, most] of [
    [2, 30, 0.03],
    [3, 20, 0.2],
  ] as const) {
    const writers = Array.from({ length: processes }, () => ({ callers: 16, wayMs: answerMs / 2 }))
    const { undecided, admitted } = await contended('exact', 1000, writers, 3000, 1, 100)
    const decided = admitted.reduce((sum, each) => sum + each, 0)
    assert.ok(undecided <= most * (decided + undecided), `${undecided} undecided of ${decided + undecided}, ${processes} processes`)
    assert.ok(Math.min(...admitted) >= 0.7 * Math.max(...admitted), `${admitted}`)
  }
})

test('a clock that steps back makes no process rest', async () => {
  const clock = manualClock(START_MS)
  const policy = tokenBucket({ limit: 100, window: '1s', name: 'stepped' })
  const limiter = createLimiter(policy, { store: casStore(memoryStore({ clock: manualClock(START_MS) })), clock, mode: 'exact' })
  for (const stepMs of [0, -10_000, -1]) {
    clock.advance(stepMs)
    assert.equal((await limiter.take('k')).source, 'store')
  }
  limiter.close()
})
