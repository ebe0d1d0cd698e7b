import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { type CellReply, Random, RedisCell, shortOrLong } from 'sluicegate-testkit'
import { randomCalls, START_US } from 'sluicegate-testkit/twins/compare-twins.js'
import { createLimiter, restoreLimiter } from '../create-limiter.js'
import { PolicyError } from '../errors.js'
import { tokenBucket } from '../policy/single-policy.js'
import { createRedisRateTable } from '../redis/redis-rate-table.js'
import { manualClock } from '../time/clock.js'
import type { CallRate } from './call-rate.js'
import { attachRateTable, createRateTable, restoreRateTable } from './create-rate-table.js'
import type { RateTable, Throttled } from './rate-table.js'

const START_MS = 1_700_000_000_000

test('sixteen at once, then thirty a minute, as the first example of redis-cell says', () => {
  const clock = manualClock(START_MS)
  using table = createRateTable({ clock })
  const rate = { maxBurst: 15, count: 30, periodS: 60 }
  assert.deepEqual(table.throttle('user123', rate), { limited: false, limit: 16, remaining: 15, retryAfterS: -1, resetAfterS: 2 })
  for (let call = 1; call < 16; call++) assert.equal(table.throttle('user123', rate).limited, false)
  assert.deepEqual(table.throttle('user123', rate), { limited: true, limit: 16, remaining: 0, retryAfterS: 2, resetAfterS: 32 })
  clock.advance(1999)
  assert.equal(table.throttle('user123', rate).limited, true)
  clock.advance(1)
  assert.equal(table.throttle('user123', rate).limited, false)
})

test('a quantity of 0 looks and changes nothing, and one above the burst never passes', () => {
  using table = createRateTable({ clock: manualClock(START_MS) })
  const rate = { maxBurst: 4, count: 1, periodS: 1 }
  assert.deepEqual(table.throttle('a', rate, 0), { limited: false, limit: 5, remaining: 5, retryAfterS: -1, resetAfterS: 0 })
  assert.equal(table.stats().keys, 0)
  assert.deepEqual(table.throttle('a', rate, 6), { limited: true, limit: 5, remaining: 5, retryAfterS: -1, resetAfterS: 0 })
  table.throttle('a', rate, 2)
  assert.deepEqual(table.throttle('a', rate, 0), { limited: false, limit: 5, remaining: 3, retryAfterS: -1, resetAfterS: 2 })
})

test('calls of two rates on one key share its arrival time', () => {
  using table = createRateTable({ clock: manualClock(START_MS) })
  table.throttle('a', { maxBurst: 99, count: 1, periodS: 1 }, 50)
  assert.deepEqual(table.throttle('a', { maxBurst: 9, count: 1, periodS: 1 }, 0), {
    limited: true,
    limit: 10,
    remaining: 0,
    retryAfterS: 40,
    resetAfterS: 50,
  })
})

test('a key that is reset is full, and two keys differ by any unit', () => {
  using table = createRateTable({ clock: manualClock(START_MS) })
  const rate = { maxBurst: 0, count: 1, periodS: 60 }
  for (const key of ['', '\0', '\0\0', 'a', 'A', '\xff', '\xff\xfe', 'x'.repeat(16_384)])
    assert.equal(table.throttle(key, rate).limited, false)
  assert.equal(table.throttle('', rate).limited, true)
  table.reset('')
  assert.equal(table.throttle('', rate).limited, false)
  assert.equal(table.throttle('\0', rate).limited, true)
})

test('rates, quantities and keys out of range are refused with the option and its value', () => {
  using table = createRateTable({ clock: manualClock(START_MS) })
  const good = { maxBurst: 1, count: 1, periodS: 1 }
  const refused: readonly [code: string, option: string, rate: CallRate, quantity?: number, key?: string][] = [
    ['LIMIT_INVALID', 'maxBurst', { ...good, maxBurst: -1 }],
    ['LIMIT_INVALID', 'maxBurst', { ...good, maxBurst: 2 ** 53 }],
    ['LIMIT_INVALID', 'count', { ...good, count: 0 }],
    ['LIMIT_INVALID', 'count', { ...good, count: 0.5 }],
    ['LIMIT_INVALID', 'periodS', { ...good, periodS: 0 }],
    ['RANGE_UNSUPPORTED', 'count', { ...good, count: 1_000_000_001 }],
    ['RANGE_UNSUPPORTED', 'maxBurst', { maxBurst: 400, count: 1, periodS: 86_400 }],
    ['COST_INVALID', 'quantity', good, -1],
    ['COST_INVALID', 'quantity', good, Number.NaN],
    ['KEY_INVALID', 'key', good, 1, 'x'.repeat(16_385)],
  ]
  for (const [code, option, rate, quantity, key = 'a'] of refused) {
    assert.throws(
      () => table.throttle(key, rate, quantity),
      (error) => error instanceof PolicyError && error.code === code && error.option === option,
    )
  }
  assert.equal(table.throttle('a', { maxBurst: 399, count: 1, periodS: 86_400 }, 400).remaining, 0)
})

test('no value of any type is answered with a TypeError, in any position: the argument is named', async () => {
  using table = createRateTable()
  const shared = createRedisRateTable({ client: { isOpen: true, sendCommand: async () => assert.fail('nothing is sent') } as never })
  const good = { maxBurst: 1, count: 1, periodS: 1 }
  const wrongs: readonly unknown[] = [null, 5n, Symbol('x'), '1', {}, [], true, Number.NaN, Number.POSITIVE_INFINITY, -0.5, () => 1]
  const calls: [option: string, key: unknown, rate: unknown, quantity?: unknown][] = [['rate', 'a', undefined]]
  for (const wrong of wrongs) {
    if (typeof wrong !== 'string') calls.push(['key', wrong, good])
    if (!(wrong instanceof Object) || typeof wrong === 'function') calls.push(['rate', 'a', wrong])
    for (const option of ['maxBurst', 'count', 'periodS']) calls.push([option, 'a', { ...good, [option]: wrong }])
    calls.push(['quantity', 'a', good, wrong])
  }
  for (const [option, key, rate, quantity] of calls) {
    const isNamed = (error: unknown): boolean => error instanceof PolicyError && error.option === option
    const call = [key, rate, quantity] as [string, CallRate, number]
    assert.throws(() => table.throttle(...call), isNamed, option)
    await assert.rejects(shared.throttle(...call), isNamed, option)
    if (option === 'key') assert.throws(() => table.reset(key as string), isNamed)
  }
})

test('a full table evicts the key with the least debt that would pass with one more, and denies new keys when none would', () => {
  const clock = manualClock(START_MS)
  using table = createRateTable({ clock, maxKeys: 8 })
  const slow = { maxBurst: 0, count: 1, periodS: 3600 }
  for (let key = 0; table.stats().refusals === 0; key++) table.throttle(`spent ${key}`, slow)
  const { keys } = table.stats()
  assert.equal(table.stats().evictions, 0)
  const denied = table.throttle('new', { maxBurst: 99, count: 100, periodS: 60 })
  assert.deepEqual(denied, { limited: true, limit: 100, remaining: 0, retryAfterS: 3600, resetAfterS: 3600 })
  for (let key = 0; key < keys; key++) assert.equal(table.throttle(`spent ${key}`, slow).limited, true, 'a spent key is kept')
  clock.advance(3_600_000)
  assert.equal(table.throttle('new', { maxBurst: 99, count: 100, periodS: 60 }, 50).limited, false)
  // It would pass with one more token, so that it makes room for others.
  for (let key = 0; key < keys; key++) table.throttle(`again ${key}`, slow)
  assert.equal(table.stats().evictions, 1)
  assert.equal(table.throttle('new', { maxBurst: 99, count: 100, periodS: 60 }, 0).remaining, 100)
})

test('threads share one exact budget for each key, also while they insert it at the same time', async () => {
  using table = createRateTable({ clock: manualClock(START_MS), maxKeys: 200 })
  const passed = await Promise.all(
    Array.from({ length: 3 }, () =>
      passedInWorker(
        table,
        `for (let call = 0; call < 300; call++) {
          for (let key = 0; key < 100; key++) if (!table.throttle('key ' + key, { maxBurst: 99, count: 1, periodS: 10 }).limited) passed[key]++
        }`,
      ),
    ),
  )
  const sums = Array.from({ length: 100 }, (_, key) => passed.reduce((sum, each) => sum + (each[key] as number), 0))
  assert.deepEqual(
    sums,
    Array.from({ length: 100 }, () => 100),
  )
  assert.equal(table.stats().keys, 100)
})

/** Runs a program in a worker thread that counts in `passed`, by key. */
function passedInWorker(table: RateTable, program: string): Promise<readonly number[]> {
  const module = new URL('./create-rate-table.js', import.meta.url).href
  const whole = `
    import { parentPort, workerData } from 'node:worker_threads'
    import { attachRateTable } from ${JSON.stringify(module)}
    const table = attachRateTable(workerData)
    const passed = Array.from({ length: 100 }, () => 0)
    ${program}
    parentPort.postMessage(passed)`
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(whole)}`), { workerData: table.handle() })
    worker.once('message', resolve)
    worker.once('error', reject)
  })
}

test('a restored table continues where the snapshot was taken, less what has flowed back', () => {
  const clock = manualClock(START_MS)
  using table = createRateTable({ clock, maxKeys: 2_000 })
  const rate = { maxBurst: 9, count: 1, periodS: 10 }
  for (let key = 0; key < 800; key++) table.throttle(`key ${key}`, rate, key % 11)
  const bytes = table.snapshot()
  clock.advance(25_000)
  using restored = restoreRateTable(bytes, { clock })
  for (let key = 0; key < 800; key++) {
    for (const quantity of [0, 3, 1]) {
      assert.deepEqual(restored.throttle(`key ${key}`, rate, quantity), table.throttle(`key ${key}`, rate, quantity), `key ${key}`)
    }
  }
  assert.equal(restored.throttle('another', rate, 10).limited, false)
})

test('a snapshot that is damaged, or of something else, is refused', () => {
  using table = createRateTable({ clock: manualClock(START_MS), maxKeys: 10 })
  table.throttle('k', { maxBurst: 9, count: 1, periodS: 10 })
  const bytes = table.snapshot()
  for (let at = 0; at < bytes.length; at++) {
    const damaged = Uint8Array.from(bytes)
    damaged[at] = (damaged[at] as number) ^ 1
    assert.throws(() => restoreRateTable(damaged), { code: 'SNAPSHOT_INVALID' })
  }
  using limiter = createLimiter(tokenBucket({ limit: 1, window: '1s' }))
  assert.throws(() => restoreRateTable(limiter.snapshot()), { code: 'SNAPSHOT_INVALID' })
  assert.throws(() => restoreLimiter(bytes), { code: 'SNAPSHOT_INVALID' })
})

test('a handle of something else is refused', () => {
  assert.throws(() => attachRateTable({} as never), { code: 'HANDLE_INVALID' })
  assert.throws(() => createRateTable({ maxKeys: 0 }), { code: 'OPTION_INVALID' })
  assert.throws(() => createRateTable({ size: 1 } as never), { code: 'OPTION_UNKNOWN' })
})

test('the keys with the most calls and the most denials are listed, and looks are not counted', () => {
  using table = createRateTable({ clock: manualClock(START_MS), hotKeys: 2 })
  const rate = { maxBurst: 1, count: 1, periodS: 10 }
  for (const key of ['often', 'seldom', 'often', 'often']) table.throttle(key, rate)
  for (let i = 0; i < 9; i++) table.throttle('looked at', rate, 0)
  using attached = attachRateTable(table.handle(), { clock: manualClock(START_MS), hotKeys: 1 })
  attached.throttle('elsewhere', rate)
  assert.deepEqual(table.hotKeys(), {
    demand: [
      { key: 'often', count: 3, overcount: 0 },
      { key: 'seldom', count: 1, overcount: 0 },
    ],
    denials: [{ key: 'often', count: 1, overcount: 0 }],
  })
  assert.equal(table.hotKeys(1).demand.length, 1)
  assert.equal(attached.hotKeys().demand[0]?.key, 'elsewhere')
  using without = createRateTable()
  without.throttle('often', rate)
  assert.deepEqual(without.hotKeys(), { demand: [], denials: [] })
  assert.throws(() => createRateTable({ hotKeys: -1 }), { code: 'OPTION_INVALID' })
})

const HISTORIES = shortOrLong(600, 3_000)
const HISTORIES_PER_TABLE = 2_000
const SEED = 20_261

test('random calls of any rates decide as redis-cell does, in all five numbers', () => {
  for (let run = 0; run < HISTORIES / HISTORIES_PER_TABLE; run++) compareHistories(SEED + run)
})

function compareHistories(seed: number): void {
  const clock = manualClock(START_US / 1000)
  using table = createRateTable({ clock })
  const cell = new RedisCell()
  const random = new Random(seed)
  let nowUs = START_US
  for (let history = 0; history < HISTORIES_PER_TABLE; history++) {
    const key = `key ${history}`
    const calls = randomCalls(random, nowUs)
    for (const [i, call] of calls.entries()) {
      nowUs = call.nowUs
      clock.set(nowUs / 1000)
      const expected = cell.throttle(key, { ...call.rate, quantity: call.quantity, nowNs: BigInt(nowUs) * 1000n })
      const actual = numbersOf(table.throttle(key, call.rate, call.quantity))
      assert.deepEqual(
        actual,
        withinLimit(expected as CellReply),
        `seed ${seed}, history ${history}: ${JSON.stringify(calls.slice(0, i + 1))}`,
      )
    }
  }
  assert.equal(table.stats().evictions + table.stats().refusals, 0)
}

/** The one difference: redis-cell divides whole microseconds, and so may report more tokens than there are. */
function withinLimit([limited, limit, remaining, retryAfterS, resetAfterS]: CellReply): CellReply {
  return [limited, limit, Math.max(0, Math.min(remaining, limit)), retryAfterS, resetAfterS]
}

function numbersOf({ limited, limit, remaining, retryAfterS, resetAfterS }: Throttled): CellReply {
  return [limited ? 1 : 0, limit, remaining, retryAfterS, resetAfterS]
}
