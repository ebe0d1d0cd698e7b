import assert from 'node:assert/strict'
import { test } from 'node:test'
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
  const both = createLimiter(allOf([user, tenant]), { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeoutMs: 1000 })
  const alone = createLimiter(tenant, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeoutMs: 1000 })
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
  const limiter = createLimiter(policy, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeoutMs: 1000 })
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

test('processes that race for one key all take their part of it, and none is rejected', async () => {
  const clock = manualClock(START_MS)
  const memory = memoryStore({ clock })
  const policy = slidingLog({ limit: 1000, window: '1s', name: 'hot' })
  const all: number[] = []
  let [slowestMs, isOver] = [0, false]
  const callers: Promise<void>[] = []
  const limiters = Array.from({ length: 8 }, (_, process) => {
    const { store } = distant(clock, memory, 1 + (process % 3) / 2)
    const limiter = createLimiter(policy, { store: casStore(store), clock, mode: 'exact', outage: 'closed', timeoutMs: 1000 })
    all.push(0)
    const caller = async (): Promise<void> => {
      while (!isOver) {
        const sentMs = clock.nowMs()
        const { allowed, source } = await limiter.take('k')
        assert.equal(source, 'store')
        slowestMs = Math.max(slowestMs, clock.nowMs() - sentMs)
        if (allowed) all[process] = (all[process] as number) + 1
        else await new Promise<void>((resolve) => clock.after?.(20, resolve))
      }
    }
    for (let i = 0; i < 8; i++) callers.push(caller())
    return limiter
  })
  await passing(clock, () => false, 4000)
  isOver = true
  await passing(clock, () => false, 500)
  await Promise.all(callers)
  const sum = all.reduce((one, other) => one + other, 0)
  const jain = sum ** 2 / (all.length * all.reduce((squares, each) => squares + each ** 2, 0))
  assert.ok(sum >= 0.97 * 4000, `${sum} of 4000`)
  assert.ok(jain >= 0.9, `${all}: ${jain}`)
  assert.ok(slowestMs <= 150, `${slowestMs} ms`)
  for (const each of limiters) each.close()
})
