import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { type Clock, type ManualClock, manualClock } from '../index.js'
import { attachGate, createGate, type Gate, type GateOptions, type GateRecord, type VerdictChange } from './index.js'

freshWarnings()

const START = Date.UTC(2026, 9, 10)

interface Fixture {
  readonly gate: Gate
  readonly clock: ManualClock
  readonly changes: VerdictChange[]
  /** Records and counts requests of a key. */
  add(key: string, requests: number): void
}

function fixture(options: Partial<GateOptions> = {}): Fixture {
  const clock = manualClock(START)
  const changes: VerdictChange[] = []
  const gate = createGate({ window: '7s', block: 100, clock, onVerdict: (change) => changes.push(change), ...options })
  const add = (key: string, requests: number): void => {
    for (let i = 0; i < requests; i++) gate.record(key)
    gate.flush()
  }
  return { gate, clock, changes, add }
}

function verdictsOf(changes: readonly VerdictChange[]): string[] {
  return changes.map(({ key, before, verdict }) => `${key}: ${before} -> ${verdict}`)
}

describe('thresholds', () => {
  test('a key passes at the threshold and is blocked above it', () => {
    const { gate, add } = fixture()
    add('a', 100)
    assert.equal(gate.check('a'), 'pass')
    add('a', 1)
    assert.equal(gate.check('a'), 'block')
    assert.equal(gate.check('b'), 'pass')
  })

  test('nothing is counted on the request path: a record counts when its time has come', () => {
    const { gate, clock } = fixture({ countEvery: 200 })
    for (let i = 0; i < 101; i++) gate.record('a')
    assert.deepEqual([gate.check('a'), gate.stats().pending, gate.stats().records], ['pass', 101, 0])
    clock.advance(199)
    assert.equal(gate.check('a'), 'pass')
    clock.advance(1)
    assert.deepEqual([gate.check('a'), gate.stats().pending, gate.stats().records], ['block', 0, 101])
  })

  test('records are counted in the same time while other keys have verdicts', () => {
    const { gate, clock, add } = fixture({ countEvery: 100, block: { above: 100, for: '1h' } })
    add('a', 101)
    clock.advance(100)
    for (let i = 0; i < 101; i++) gate.record('b')
    clock.advance(100)
    assert.equal(gate.check('b'), 'block')
  })

  test('verdicts rise with the count, and each ends at its own time', () => {
    const { gate, clock, changes, add } = fixture({
      flag: { above: 10, for: '60s' },
      throttle: { above: 20, for: '30s' },
      block: { above: 40, for: '10s' },
    })
    for (const [requests, verdict] of [
      [10, 'pass'],
      [1, 'flag'],
      [10, 'throttle'],
      [20, 'block'],
    ] as const) {
      add('a', requests)
      assert.equal(gate.check('a'), verdict)
    }
    clock.advance(10_200)
    gate.flush()
    assert.equal(gate.check('a'), 'throttle')
    clock.advance(20_000)
    gate.flush()
    assert.equal(gate.check('a'), 'flag')
    clock.advance(30_000)
    gate.flush()
    assert.deepEqual([gate.check('a'), gate.verdicts()], ['pass', []])
    assert.deepEqual(verdictsOf(changes), [
      'a: pass -> flag',
      'a: flag -> throttle',
      'a: throttle -> block',
      'a: block -> throttle',
      'a: throttle -> flag',
      'a: flag -> pass',
    ])
    assert.deepEqual(
      changes.slice(3).map(({ timeMs }) => timeMs - START),
      [10_000, 30_000, 60_000],
    )
  })

  test('costs add up as requests do', () => {
    const { gate } = fixture({ block: 1_000_000 })
    gate.record('a', 900_000)
    gate.record('a', 100_001)
    assert.equal(gate.count('a'), 1_000_001)
    assert.equal(gate.check('a'), 'block')
  })
})

describe('hysteresis', () => {
  test('a verdict stays while the count is at or above `below`, and ends when it has been under it for the time of `for`', () => {
    const { gate, clock, add } = fixture({ block: { above: 100, below: 50, for: '10s' } })
    add('a', 101)
    // 50 a window is too low to begin a verdict and enough to keep it.
    for (let second = 0; second < 60; second++) {
      clock.advance(1_000)
      add('a', 8)
      add('b', 8)
      assert.equal(gate.check('a'), 'block', `second ${second}`)
      assert.equal(gate.check('b'), 'pass', `second ${second}`)
    }
    // 3 a second are under it from the time when the window holds no more of the faster ones.
    let endedAfterS = 0
    while (gate.check('a') === 'block') {
      clock.advance(1_000)
      add('a', 3)
      endedAfterS++
    }
    assert.ok(endedAfterS > 10 && endedAfterS <= 10 + 7 + 1, `${endedAfterS} s`)
  })

  test('a count between the two thresholds does not flap', () => {
    const { clock, changes, add } = fixture({ block: { above: 100, below: 50, for: '5s' } })
    add('a', 101)
    for (let i = 0; i < 200; i++) {
      clock.advance(500)
      add('a', i % 14 < 7 ? 5 : 6)
    }
    assert.deepEqual(verdictsOf(changes), ['a: pass -> block'])
  })

  test('without further records a verdict ends by itself, also for those who only look', () => {
    const { gate, clock, add, changes } = fixture({ block: { above: 100, for: '10s' } })
    add('a', 101)
    const { untilMs, retryAfterMs } = gate.inspect('a')
    assert.ok(untilMs >= START + 10_000 && untilMs < START + 10_128)
    assert.equal(retryAfterMs, untilMs - START)
    clock.set(START + 9_999)
    assert.equal(gate.check('a'), 'block')
    // A look reads an end that is rounded up, unless the gate has ended the verdict before.
    clock.set(untilMs)
    assert.deepEqual([gate.check('a'), gate.inspect('a')], ['pass', { verdict: 'pass', untilMs: 0, retryAfterMs: 0 }])
    clock.advance(2_000)
    assert.deepEqual(verdictsOf(changes), ['a: pass -> block', 'a: block -> pass'])
    assert.equal(gate.stats().verdicts, 0)
  })
})

describe('times', () => {
  test('records of a batch count at their own times, and one before the window does not count', () => {
    const { gate } = fixture()
    const at = (secondsAgo: number, requests: number): GateRecord[] =>
      Array.from({ length: requests }, () => ({ key: 'a', timeMs: START - secondsAgo * 1_000 }))
    gate.recordAll([...at(20, 60), ...at(0, 60), ...at(20, 60)])
    gate.flush()
    assert.deepEqual([gate.count('a'), gate.check('a'), gate.stats().late], [60, 'pass', 60])
  })

  test('a time ahead of the clock counts as now: it pushes nothing out of the window', () => {
    const { gate, add } = fixture()
    add('a', 90)
    gate.record('b', 1, START + 86_400_000)
    add('a', 20)
    assert.equal(gate.check('a'), 'block')
  })

  test('a log of the past gives verdicts in its own time, and none in force now', () => {
    const { gate, changes } = fixture({ block: { above: 10, for: '10s' } })
    const dayAgoMs = START - 86_400_000
    for (let i = 0; i < 20; i++) gate.record('a', 1, dayAgoMs + i)
    gate.flush()
    for (let i = 0; i < 20; i++) gate.record('b', 1, dayAgoMs + 60_000 + i)
    gate.flush()
    assert.deepEqual(verdictsOf(changes), ['a: pass -> block', 'b: pass -> block', 'a: block -> pass'])
    assert.equal(gate.check('b'), 'pass')
    gate.flush()
    assert.deepEqual(gate.verdicts(), [])
  })

  test('a clock that steps back frees no key and holds no key longer than the step', () => {
    let nowMs = START
    const clock: Clock = { nowMs: () => nowMs }
    const { gate, add } = fixture({ clock, block: { above: 100, for: '10s' } })
    add('a', 60)
    nowMs -= 3_600_000
    // Counted in the same window, though their time is an hour before it.
    add('a', 60)
    assert.equal(gate.check('a'), 'block')
    nowMs += 3_600_000 + 10_200
    assert.equal(gate.check('a'), 'pass')
  })
})

describe('hostile traffic', () => {
  test('a flood of distinct keys neither ends the verdict of an abuser nor puts an honest key over the threshold', () => {
    const { gate, changes, add } = fixture({ block: { above: 1_000, for: '60s' }, width: 4_096 })
    add('abuser', 1_001)
    add('honest', 200)
    const { memoryBytes } = gate.stats()
    for (let i = 0; i < 400_000; i++) gate.record(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
    add('honest', 200)
    assert.deepEqual([gate.check('abuser'), gate.check('honest')], ['block', 'pass'])
    assert.deepEqual(verdictsOf(changes), ['abuser: pass -> block'])
    const { epsilon, total, margin, refused } = gate.stats()
    assert.equal(gate.stats().memoryBytes, memoryBytes)
    assert.ok(margin <= epsilon * total && refused === 0)
    assert.ok(gate.count('honest') >= 400)
  })

  test('where counts are too high by more than the threshold, keys of a flood still pass', () => {
    const { gate, changes } = fixture({ block: { above: 100, for: '60s' }, width: 64, depth: 2 })
    for (let i = 0; i < 200_000; i++) gate.record(`key ${i}`)
    gate.flush()
    assert.ok(gate.stats().margin > 100, 'the sketch is too small for this traffic')
    // Without the margin all keys that came after the first would have a verdict.
    assert.ok(changes.length < 2_000, `${changes.length} verdicts`)
  })

  test('among as many verdicts as may be, a more severe one takes the place of a lesser, and no other', () => {
    const { gate, add } = fixture({ flag: { above: 10, for: '1h' }, block: { above: 100, for: '1h' }, maxVerdicts: 2 })
    add('blocked', 101)
    add('flagged', 11)
    add('late', 11)
    assert.deepEqual([gate.check('flagged'), gate.check('late'), gate.stats().refused], ['flag', 'pass', 1])
    add('worse', 101)
    assert.deepEqual(
      ['blocked', 'flagged', 'worse'].map((key) => gate.check(key)),
      ['block', 'pass', 'block'],
    )
    add('third', 150)
    assert.deepEqual(
      ['blocked', 'worse', 'third'].map((key) => gate.check(key)),
      ['block', 'block', 'pass'],
    )
    assert.equal(gate.stats().verdicts, 2)
  })

  test('the top list keeps the keys with the highest counts through a flood, and forgets those that stopped', () => {
    const { gate, clock, add } = fixture({ topKeys: 3 })
    for (const [key, requests] of [
      ['a', 50],
      ['b', 40],
      ['c', 30],
      ['d', 20],
    ] as const)
      add(key, requests)
    for (let i = 0; i < 20_000; i++) gate.record(`key ${i}`)
    assert.deepEqual(
      gate.top().map(({ key }) => key),
      ['a', 'b', 'c'],
    )
    assert.deepEqual(
      gate.top(1).map(({ key }) => key),
      ['a'],
    )
    clock.advance(60_000)
    add('d', 1)
    assert.deepEqual(gate.top(), [{ key: 'd', count: 1 }])
  })

  test('more records than wait at once are counted at once', () => {
    const { gate } = fixture({ countEvery: '1h', block: 20_000 })
    for (let i = 0; i < 30_000; i++) gate.record('a')
    const { pending, records } = gate.stats()
    assert.ok(pending <= 8_192 && pending + records === 30_000)
    assert.equal(gate.check('a'), 'block')
  })

  test('a callback may record, look and flush while records are counted', () => {
    const gate: Gate = createGate({
      window: '1s',
      block: 10,
      clock: manualClock(START),
      onVerdict: ({ key }) => {
        gate.flush()
        if (key === 'a') for (let i = 0; i < 20_000; i++) gate.record('b')
      },
    })
    for (let i = 0; i < 11; i++) gate.record('a')
    gate.flush()
    gate.flush()
    assert.deepEqual([gate.check('a'), gate.check('b'), gate.stats().records], ['block', 'block', 20_011])
  })
})

describe('misuse', () => {
  for (const [what, options, message] of [
    ['no threshold', { window: '1s' }, /OPTION_INVALID.*flag, throttle or block/],
    ['no window', { block: 5 }, /DURATION_INVALID.*window/],
    ['a window that is too short', { window: 50, block: 5 }, /DURATION_INVALID.*window/],
    ['thresholds out of order', { window: '1s', flag: 10, block: 5 }, /OPTION_INVALID.*flag\.above: must be below 5/],
    ['a lower threshold above the upper', { window: '1s', block: { above: 5, below: 6 } }, /OPTION_INVALID.*block\.below/],
    ['a width that is no power of two', { window: '1s', block: 5, width: 1_000 }, /OPTION_INVALID.*power of two/],
    ['an unknown option', { window: '1s', blok: 5 }, /OPTION_UNKNOWN.*did you mean block/],
    ['an unknown member of a threshold', { window: '1s', block: { above: 5, fo: '1s' } }, /OPTION_UNKNOWN/],
    ['no clock', { window: '1s', block: 5, clock: {} }, /CLOCK_INVALID/],
    ['a negative time', { window: '1s', block: { above: 5, for: -1 } }, /DURATION_INVALID.*block\.for/],
  ] as const) {
    test(`${what} is refused`, () => {
      assert.throws(
        () => createGate(options as unknown as GateOptions),
        (error: { code: string; option: string; message: string }) => message.test(`${error.code} ${error.message}`),
      )
    })
  }

  test('a runtime without shared memory gets an error that says so', () => {
    const before = globalThis.SharedArrayBuffer
    const clock = manualClock()
    Reflect.deleteProperty(globalThis, 'SharedArrayBuffer')
    try {
      assert.throws(() => createGate({ window: '1s', block: 5, clock }), { code: 'RUNTIME_UNSUPPORTED' })
    } finally {
      globalThis.SharedArrayBuffer = before
    }
  })

  test('keys, costs and times are checked, and nothing of a refused record is counted', () => {
    const { gate } = fixture()
    for (const key of ['', 'x'.repeat(1_025), 7, undefined]) {
      assert.throws(() => gate.check(key as string), { code: 'KEY_INVALID' })
      assert.throws(() => gate.record(key as string), { code: 'KEY_INVALID' })
    }
    for (const cost of [0, -1, 1.5, Number.NaN, 2 ** 32]) assert.throws(() => gate.record('a', cost), { code: 'COST_INVALID' })
    assert.throws(() => gate.record('a', 1, Number.NaN), { code: 'OPTION_INVALID' })
    assert.deepEqual([gate.count('a'), gate.stats().records], [0, 0])
  })

  test('a closed gate throws, and its handle is no longer given', () => {
    const { gate } = fixture()
    gate.close()
    for (const call of [() => gate.check('a'), () => gate.record('a'), () => gate.flush(), () => gate.handle(), () => gate.inspect('a')])
      assert.throws(call, { code: 'CLOSED' })
  })

  test('a handle of another thing is refused', () => {
    const { gate } = fixture()
    const handle = { ...gate.handle() } as { readonly sluicegate: 1 }
    for (const wrong of [undefined, {}, { sluicegate: 1 }, { ...handle, verdicts: new SharedArrayBuffer(128) }, { ...handle, secret: [1] }])
      assert.throws(() => attachGate(wrong as typeof handle), { code: 'HANDLE_INVALID' })
    const custom = createGate({ window: '1s', block: 5, clock: { nowMs: () => 0 } })
    assert.throws(() => attachGate(custom.handle()), { code: 'CLOCK_INVALID' })
    assert.equal(attachGate(custom.handle(), { clock: { nowMs: () => 0 } }).check('a'), 'pass')
  })

  test('neither keys nor the secret are logged', () => {
    const { gate, add } = fixture()
    add('a-secret-key', 200)
    for (const shown of [gate, gate.handle()]) assert.ok(!/secret|a-secret-key/.test(inspect(shown) + JSON.stringify(shown)))
  })
})

test('a gate whose error exceeds its lowest threshold warns once, with the width that would do', async () => {
  const warnings: Error[] = []
  const note = (warning: Error): void => void warnings.push(warning)
  process.on('warning', note)
  try {
    const crowd = (width: number): Gate => {
      const { gate, add } = fixture({ width, flag: 150, block: 200 })
      for (let i = 0; i < 5_000; i++) add(`user ${i}`, 1)
      return gate
    }
    crowd(64)
    crowd(64)
    await new Promise(setImmediate)
    const [first, ...others] = warnings.filter(({ message }) => message.includes('lowest threshold, 150'))
    assert.equal(others.length, 0)
    assert.match(`${first?.message}`, /width 64 .*lowest threshold, 150.* width: 128 would do/)
    assert.match(`${first?.message}`, /warnings\.md#sluicegate_gate_width/)
    const wide = crowd(128)
    assert.ok(wide.stats().epsilon * wide.stats().total <= 150)
    await new Promise(setImmediate)
    assert.equal(warnings.filter(({ message }) => message.includes('lowest threshold, 150')).length, 1)
  } finally {
    process.off('warning', note)
  }
})
