import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { CREW_ALGORITHMS, crewFor, everyNth, Mate, policyOf, shortOrLong } from 'sluicegate-testkit'
import type { MutationReport } from 'sluicegate-testkit/runtimes/mutated-snapshots.js'
import { createLimiter, restoreLimiter } from '../../create-limiter.js'
import {
  allOf,
  attachLimiter,
  concurrency,
  fixedWindow,
  gcra,
  type Key,
  type Policy,
  StoreError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../index.js'
import type { Limiter } from '../../limiter.js'
import { manualClock } from '../../time/clock.js'
import { high, low } from '../fingerprint.js'
import type { MemoryLimiter } from '../memory-limiter.js'
import type { OpenCore } from '../open-core.js'

const POLICIES: readonly Policy[] = [
  tokenBucket({ limit: 10, window: '1s' }),
  gcra({ limit: 999_983, window: '10s', burst: 10 }),
  fixedWindow({ limit: 10, window: '1s' }),
  fixedWindow({ limit: 10, window: 'day', timeZone: 'Asia/Kolkata' }),
  slidingWindow({ limit: 10, window: '1s' }),
  slidingWindow({ limit: 100_000, window: '1s', name: 'wide' }),
  slidingLog({ limit: 10, window: '1s' }),
  concurrency({ limit: 10, ttl: '1s' }),
  allOf([tokenBucket({ limit: 10, window: '1s' }), slidingLog({ limit: 20, window: '10s' }), concurrency({ limit: 15, ttl: '2s' })]),
]
const START_MS = 1_789_000_000_000

/** Takes of many keys, over time. */
function use(limiter: Limiter, advance: (ms: number) => void): boolean[] {
  const passed: boolean[] = []
  for (let i = 0; i < 400; i++) {
    passed.push(limiter.take(`key ${i % 30}`, 1 + (i % 3)).allowed)
    if (i % 7 === 0) advance(13)
  }
  return passed
}

for (const policy of POLICIES) {
  test(`${policy.name}, ${policy.algorithm}: what was restored answers for ever as the original does`, () => {
    const [clock, later] = [manualClock(START_MS), manualClock(START_MS)]
    const limiter = createLimiter(policy, { clock, maxKeys: 50 })
    use(limiter, clock.advance)
    limiter.block('key 3', '1m')
    limiter.penalize('key 4', 25)
    limiter.update(policy)
    limiter.take('key 5')
    later.set(clock.nowMs())
    const restored = restoreLimiter(limiter.snapshot(), { clock: later })
    assert.deepEqual(restored.policy, limiter.policy)
    assert.deepEqual({ ...restored.stats(), decisions: {} }, { ...limiter.stats(), decisions: {} })
    for (let i = 0; i < 31; i++) assert.deepEqual(restored.peek(`key ${i}`, 2), limiter.peek(`key ${i}`, 2))
    assert.deepEqual(use(restored, later.advance), use(limiter, clock.advance))
    restored.update(policy)
    assert.equal(restored.take('another').allowed, true)
  })
}

test('a restart hands out no fresh burst, and what would have come back meanwhile has come back', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1s' }), { clock, maxKeys: 10 })
  limiter.take('k', 10)
  const snapshot = limiter.snapshot()
  limiter.close()
  const restarted = restoreLimiter(snapshot, { clock: manualClock(START_MS + 300) })
  assert.equal(restarted.take('k', 4).allowed, false)
  assert.equal(restarted.take('k', 3).allowed, true)
})

test('a permit of a process that is gone comes back by its time to live, also after a restart', () => {
  const clock = manualClock(START_MS)
  const limiter = createLimiter(concurrency({ limit: 1, ttl: '10s' }), { clock, maxKeys: 10 })
  limiter.take('k')
  const later = manualClock(START_MS + 9_999)
  const restarted = restoreLimiter(limiter.snapshot(), { clock: later })
  assert.equal(restarted.take('k').retryAfterMs, 1)
  later.advance(1)
  assert.equal(restarted.take('k').allowed, true)
})

test('a snapshot that is damaged anywhere is refused, and so is anything else', () => {
  const limiter = createLimiter(slidingWindow({ limit: 5, window: '1m' }), { clock: manualClock(START_MS), maxKeys: 10 })
  for (let i = 0; i < 20; i++) limiter.take(`key ${i}`)
  const snapshot = limiter.snapshot()
  const refused = { name: 'PolicyError', code: 'SNAPSHOT_INVALID', option: 'snapshot' }
  for (let at = 0; at < snapshot.length; at++) {
    const damaged = snapshot.slice()
    damaged[at] = (damaged[at] as number) ^ (1 << (at % 8))
    assert.throws(() => restoreLimiter(damaged), refused, `byte ${at}`)
  }
  for (let length = 0; length < snapshot.length; length++) assert.throws(() => restoreLimiter(snapshot.slice(0, length)), refused)
  for (const junk of [undefined, 'text', [], new Uint8Array(100), new TextEncoder().encode('SLUICEGT and what is not one')]) {
    assert.throws(() => restoreLimiter(junk as Uint8Array), refused)
  }
})

test('a policy that the snapshot does not know gets the room, and the way to be full, that the limiter was made with', () => {
  const clock = manualClock(START_MS)
  const wide = slidingWindow({ limit: 100_000, window: '1h' })
  for (const onFull of ['deny', 'evict'] as const) {
    const limiter = createLimiter(tokenBucket({ limit: 1, window: '1h' }), { clock, maxKeys: 20, onFull })
    const policyFor = (key: string): Policy | undefined => (key.startsWith('wide') ? wide : undefined)
    const before = limiter.stats().memoryBytes
    const restored = restoreLimiter(restoreLimiter(limiter.snapshot(), { clock }).snapshot(), { clock, policyFor })
    for (let i = 0; i < 500; i++) restored.take(`wide ${i}`)
    const { memoryBytes, refusals, evictions } = restored.stats()
    assert.deepEqual([memoryBytes, refusals > 0, evictions > 0], [2 * before, onFull === 'deny', onFull === 'evict'])
  }
})

test('a snapshot of another version says so', () => {
  const snapshot = createLimiter(tokenBucket({ limit: 1, window: '1s' }), { maxKeys: 1 }).snapshot()
  new DataView(snapshot.buffer).setUint32(8, 7, true)
  assert.throws(() => restoreLimiter(snapshot), /of version 7; this library reads version 2/)
})

// snapshot-workers.test.ts asks the same of all algorithms.
for (const [i, policy] of [
  tokenBucket({ limit: 40_000, window: '30d' }),
  slidingLog({ limit: 40_000, window: '30d' }),
  slidingWindow({ limit: 100_000, window: '30d' }),
].entries()) {
  everyNth(i, 3)(`${policy.algorithm}: a snapshot taken while workers take holds a moment between before and after`, async (t) => {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(policy, { clock, maxKeys: 20 })
    const keys = ['a', 'b', 'c']
    const taking = crewFor(t, 2, { handle: limiter.handle() }).ask({ kind: 'take', keys, rounds: shortOrLong(6_000, 12_000) })
    let done = false
    void taking.finally(() => {
      done = true
    })
    let snapshots = 0
    while (!done) {
      const before = keys.map((key) => limiter.peek(key).remaining)
      const restored = restoreLimiter(limiter.snapshot(), { clock })
      const after = keys.map((key) => limiter.peek(key).remaining)
      for (const [i, key] of keys.entries()) {
        const { remaining } = restored.peek(key)
        assert.ok(remaining <= (before[i] as number) && remaining >= (after[i] as number), `${before[i]} >= ${remaining} >= ${after[i]}`)
      }
      restored.close()
      snapshots++
      await new Promise(setImmediate)
    }
    t.diagnostic(`${snapshots} snapshots`)
    await taking
  })
}

describe('memory snapshot', () => {
  const START_MS = 1_789_000_000_000
  const KEYS = Array.from({ length: 60 }, (_, i) => `key ${i}`)

  /** [before, after, spent, left afterwards] */
  const CHANGES: readonly (readonly [Policy, Policy, number, number])[] = [
    [concurrency({ limit: 2, ttl: '1h' }), concurrency({ limit: 3, ttl: '1h' }), 2, 1],
    [slidingLog({ limit: 5, window: '1h' }), slidingLog({ limit: 50, window: '1h' }), 5, 45],
    [slidingWindow({ limit: 6, window: '1h' }), slidingWindow({ limit: 100_000, window: '1h' }), 6, 99_994],
  ]

  for (const [before, after, spent, left] of CHANGES) {
    for (const isSeen of [false, true]) {
      const seen = isSeen ? 'sees the change' : 'does not see the change'
      test(`${after.name}, in force once the copy has begun, by a thread that ${seen} at once: what was spent is spent`, () => {
        const clock = manualClock(START_MS)
        const limiter = createLimiter(before, { clock, maxKeys: KEYS.length })
        const other = attachLimiter(limiter.handle())
        for (const key of KEYS) limiter.take(key, spent === 2 ? 1 : spent)
        if (spent === 2) for (const key of KEYS) limiter.take(key)
        onceSaved(openOf(limiter), () => {
          other.update(after)
          if (isSeen) assert.equal(limiter.policy.name, after.name)
        })
        const restored = restoreLimiter(limiter.snapshot(), { clock })
        assert.equal(restored.policy.name, after.name)
        for (const key of KEYS) assert.equal(restored.peek(key).remaining, left, key)
      })
    }
  }

  test('all parts of a snapshot are of one policy: a change between two of them begins it anew', () => {
    const clock = manualClock(START_MS)
    const parts = (limit: number): Policy => allOf([slidingLog({ limit, window: '1h' }), concurrency({ limit, ttl: '1h' })])
    const limiter = createLimiter(parts(5), { clock, maxKeys: 10 })
    const other = attachLimiter(limiter.handle())
    for (let i = 0; i < 5; i++) limiter.take('k')
    const [, second] = (limiter as unknown as { parts: readonly MemoryLimiter[] }).parts
    onceSaved(second?.section.open as OpenCore, () => other.update(parts(50)))
    const restored = restoreLimiter(limiter.snapshot(), { clock })
    assert.deepEqual([restored.policy, restored.peek('k').remaining], [limiter.policy, 45])
  })

  test('a thread that died with its ticket in a permit does not keep a snapshot from being taken', () => {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(concurrency({ limit: 2, ttl: '1h' }), { clock, maxKeys: 2 })
    limiter.take('k')
    const open = openOf(limiter)
    const words = new BigUint64Array(open.memory.buffer)
    const descriptor = open.core.openDescriptor()
    ;(limiter as unknown as MemoryLimiter).hash('k')
    open.core.stage(descriptor, low, high, START_MS * 1000, 1)
    // As far as `commit` of the core comes before it dies: of a state and a permit the second bears the ticket.
    const [status = 0n, , , , , permit = 0n] = words.subarray(descriptor / 8)
    words[Number(permit) / 8] = (3n << 62n) | (BigInt(descriptor / open.constant('DESCRIPTOR_SIZE')) << 39n) | (status >> 2n)
    assert.equal(restoreLimiter(limiter.snapshot(), { clock }).peek('k').remaining, 1)
    assert.equal(limiter.peek('k').remaining, 1)
  })

  function openOf(limiter: Limiter): OpenCore {
    return (limiter as unknown as MemoryLimiter).section.open
  }

  /** Does something as soon as the core has saved a part of its table once more. */
  function onceSaved(open: OpenCore, something: () => void): void {
    const { saveEntries } = open.core
    open.core.saveEntries = (...range) => {
      open.core.saveEntries = saveEntries
      const isDone = saveEntries(...range)
      something()
      return isDone
    }
  }
})

describe('snapshot workers', () => {
  // Snapshots one after another while worker threads are at it. The clock stands still: nothing comes back by itself.

  const START_MS = 1_789_000_000_000
  const MONTH_MS = 30 * 86_400_000
  const NAMES = ['a', 'b', 'c']
  const MAX_KEYS = 20
  /** More than the workers take in all, and fewer. */
  const LARGER = 4000
  const LARGE = 3000
  const TAKES = 400
  const UPDATES = 120
  const WILD_MS = 40

  const crew = crewFor({ after }, 2)

  // In a short run each algorithm has one of the three at most, by turns: the last one starts a thread of its own.
  for (const [i, { name, cost, specOf, keyOf }] of CREW_ALGORITHMS.entries()) {
    const clock = manualClock(START_MS)
    const keys = NAMES.map(keyOf)
    const [large, larger] = [LARGE, LARGER].map((takes) => policyOf(specOf(takes, MONTH_MS))) as [Policy, Policy]

    everyNth(i, 10)(`${name}: a snapshot taken while workers take holds what was spent at some time while it was taken`, async (t) => {
      const limiter = createLimiter(large, { clock, maxKeys: MAX_KEYS })
      await crew.attach({ handle: limiter.handle() })
      const taken = await whileBusy(crew.ask({ kind: 'take', keys, rounds: TAKES, cost }), () => checkMoment(limiter, keys))
      t.diagnostic(`${taken} snapshots`)
      for (const key of keys) assert.equal(spentOf(limiter, key), 2 * TAKES * cost)
    })

    everyNth(i + 1, 10)(`${name}: the same while workers put one policy after another in force`, async (t) => {
      const limiter = createLimiter(large, { clock, maxKeys: MAX_KEYS })
      await crew.attach({ handle: limiter.handle() })
      const storm = crew.ask({ kind: 'storm', keys, cost, policies: [larger, large], rounds: UPDATES })
      let contended = 0
      const taken = await whileBusy(storm, () => {
        try {
          checkMoment(limiter, keys)
        } catch (error) {
          if (!(error instanceof StoreError)) throw error
          contended++
        }
      })
      t.diagnostic(`${taken} snapshots, ${contended} of them given up`)
      assert.ok(taken > contended)
    })

    everyNth(i + 2, 10)(`${name}: a snapshot taken while a worker does anything at all can be restored and used`, async () => {
      const limiter = createLimiter(large, { clock, maxKeys: MAX_KEYS })
      const mate = new Mate({ handle: limiter.handle() })
      const counts = new Int32Array(new SharedArrayBuffer(4 * (1 + keys.length)))
      try {
        mate.start({ kind: 'for-ever', keys, cost, seed: 7, counts, takesOnly: false })
        for (let calls = 0; calls === 0; calls = Atomics.load(counts, 0)) await nextTurn()
        const untilMs = performance.now() + WILD_MS
        while (performance.now() < untilMs) {
          const restored = restoreLimiter(limiter.snapshot(), { clock })
          for (const key of keys) {
            restored.take(key, cost)
            restored.reset(key)
            assert.equal(spentOf(restored, key), 0)
          }
          restored.close()
        }
      } finally {
        await mate.terminate()
      }
    })
  }

  /** Does something again and again, until the promise is fulfilled; at least once. How often. */
  async function whileBusy(promise: Promise<unknown>, something: () => void): Promise<number> {
    let isBusy = true
    const ended = promise.finally(() => {
      isBusy = false
    })
    let times = 0
    do {
      something()
      times++
      await nextTurn()
    } while (isBusy)
    await ended
    return times
  }

  function checkMoment(limiter: Limiter, keys: readonly Key[]): void {
    const before = keys.map((key) => spentOf(limiter, key))
    const restored = restoreLimiter(limiter.snapshot(), { clock: manualClock(START_MS) })
    const later = keys.map((key) => spentOf(limiter, key))
    for (const [i, key] of keys.entries()) {
      const spent = spentOf(restored, key)
      assert.ok((before[i] as number) <= spent && spent <= (later[i] as number), `${key}: ${before[i]} <= ${spent} <= ${later[i]}`)
    }
    restored.close()
  }

  function spentOf(limiter: Limiter, key: Key): number {
    const { limit, remaining } = limiter.peek(key)
    return limit - remaining
  }
})

// A checksum tells damage, not who computed it: what was changed on purpose has to be refused, or to stay within bounds.

/** Longer than a seed takes on a busy machine. */
const LONGEST_MS = 20_000
const MUTATIONS = shortOrLong(60, 200)

async function reported(from: number, to: number): Promise<MutationReport> {
  const progress = new SharedArrayBuffer(8)
  const worker = new Worker(new URL(import.meta.resolve('sluicegate-testkit/runtimes/mutated-snapshots.js')), {
    workerData: { from, to, progress },
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  })
  const at = new Int32Array(progress)
  let [seen, sinceMs] = [0, Date.now()]
  let watch: ReturnType<typeof setInterval> | undefined
  try {
    return await new Promise((resolve, reject) => {
      worker.once('message', resolve)
      worker.once('error', reject)
      watch = setInterval(() => {
        const count = Atomics.load(at, 1)
        if (count !== seen) [seen, sinceMs] = [count, Date.now()]
        else if (Date.now() - sinceMs > LONGEST_MS) reject(new Error(`seed ${Atomics.load(at, 0)} hangs`))
      }, 100)
    })
  } finally {
    clearInterval(watch)
    await worker.terminate()
  }
}

test('a snapshot whose words were changed is refused, or neither hangs, nor traps, nor takes memory without end, whatever is asked of it', async () => {
  const { refused, driven, faults } = await reported(0, MUTATIONS)
  assert.deepEqual(faults, [])
  assert.ok(refused > MUTATIONS / 6 && driven > MUTATIONS / 12, `${refused} refused, ${driven} driven`)
})
