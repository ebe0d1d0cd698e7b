import assert from 'node:assert/strict'
import { on } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { createLimiter, tokenBucket } from '../index.js'
import { afterUnheld, clockFromHandle, clockHandle, coarseClock, manualClock, preciseClock, preciseFrom } from './clock.js'

test('a manual clock stands still until it is moved', () => {
  const clock = manualClock(1000.25)
  assert.equal(clock.nowMs(), 1000.25)
  clock.advance(0.5)
  assert.equal(clock.nowMs(), 1000.75)
  clock.advance(-1000)
  assert.equal(clock.nowMs(), 0.75)
  clock.set(2 ** 41)
  assert.equal(clock.nowMs(), 2 ** 41)
})

test('a manual clock fires the timers that fell due, in order, at their time', () => {
  const clock = manualClock()
  const fired: string[] = []
  const timer = (name: string, ms: number) => clock.after(ms, () => void fired.push(`${name} at ${clock.nowMs()}`))
  timer('late', 30)
  timer('early', 10)
  timer('middle', 20)
  const cancel = timer('cancelled', 15)
  cancel()
  clock.advance(9.999)
  assert.deepEqual(fired, [])
  clock.advance(15)
  assert.deepEqual(fired, ['early at 10', 'middle at 20'])
  clock.set(1e6)
  assert.deepEqual(fired, ['early at 10', 'middle at 20', 'late at 30'])
  assert.equal(clock.nowMs(), 1e6)
})

test('a timer of a manual clock may set the next one', () => {
  const clock = manualClock()
  const ticks: number[] = []
  const tick = (): void => {
    ticks.push(clock.nowMs())
    if (ticks.length < 5) clock.after(10, tick)
  }
  clock.after(10, tick)
  clock.advance(100)
  assert.deepEqual(ticks, [10, 20, 30, 40, 50])
})

test('a manual clock takes finite times only', () => {
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    assert.throws(() => manualClock(wrong), { code: 'CLOCK_INVALID' })
    assert.throws(() => manualClock().advance(wrong), { code: 'CLOCK_INVALID' })
  }
  for (const wrong of [null, undefined, '5', 5n, {}]) {
    const clock = manualClock(7)
    const refused = { name: 'PolicyError', code: 'CLOCK_INVALID', option: 'ms', value: wrong }
    assert.throws(() => clock.advance(wrong as number), refused)
    assert.throws(() => clock.set(wrong as number), refused)
    assert.equal(clock.nowMs(), 7)
  }
})

test('the handle of a manual clock leads to the same time', () => {
  const clock = manualClock(5)
  const other = clockFromHandle(clockHandle(clock))
  clock.advance(37)
  assert.equal(other?.nowMs(), 42)
})

/** However long the thread is interrupted: one reading lies between two of another clock, which may be a millisecond apart from it. */
function assertBetween(other: () => number, read: () => number): void {
  const before = other()
  const reading = read()
  const after = other()
  assert.ok(reading >= before - 1 && reading <= after + 1, `${before}, ${reading}, ${after}`)
}

test('a precise clock reads Unix time and never runs back', () => {
  const clock = preciseClock()
  assertBetween(
    () => performance.timeOrigin + performance.now(),
    () => clock.nowMs(),
  )
  let last = 0
  for (let i = 0; i < 10_000; i++) {
    const nowMs = clock.nowMs()
    assert.ok(nowMs >= last)
    last = nowMs
  }
})

test('a coarse clock stands still within a turn of the event loop and moves between turns', async () => {
  const clock = coarseClock()
  const readings: number[] = []
  for (let turn = 0; turn < 3; turn++) {
    const first = clock.nowMs()
    const busyUntilMs = performance.now() + 2
    while (performance.now() < busyUntilMs) assert.equal(clock.nowMs(), first)
    readings.push(first)
    await nextTurn()
  }
  assert.ok(readings.every((reading, i) => i === 0 || reading >= (readings[i - 1] as number) + 2))
})

test('a limiter reads a coarse clock once a turn', async () => {
  const limiter = createLimiter(tokenBucket({ limit: 1000, window: '1s', burst: 1 }), { clock: coarseClock() })
  const busyUntilMs = performance.now() + 5
  let passed = 0
  while (performance.now() < busyUntilMs) if (limiter.take('k').allowed) passed++
  assert.equal(passed, 1)
  await nextTurn()
  assert.equal(limiter.take('k').allowed, true)
})

for (const clockOf of [preciseClock, coarseClock]) {
  test(`the handle of a ${clockOf.name} leads to the same time base`, () => {
    const [clock, here] = [clockFromHandle(clockHandle(clockOf())), preciseClock()]
    // A coarse clock is read for the first time in its turn.
    assertBetween(
      () => here.nowMs(),
      () => clock?.nowMs() ?? 0,
    )
  })
}

test('a thread that is interrupted while it compares its clocks compares them again', (t) => {
  const clock = preciseClock()
  const offsetMs = (): number => {
    const handle = clockHandle(clock)
    return handle.kind === 'precise' ? handle.monotonicMs : Number.NaN
  }
  const undisturbedMs = offsetMs()
  const hrtime = process.hrtime
  const busy = (ms: number): void => {
    const untilMs = performance.now() + ms
    while (performance.now() < untilMs);
  }
  for (const [beforeMs, afterMs] of [
    [1, 0],
    [0, 1],
    [1, 1],
  ] as const) {
    let readings = 0
    t.mock.method(process, 'hrtime', () => {
      const isInterrupted = readings++ % 3 < 2
      if (isInterrupted) busy(beforeMs)
      const reading = hrtime()
      if (isInterrupted) busy(afterMs)
      return reading
    })
    const disturbedMs = offsetMs()
    assert.ok(Math.abs(disturbedMs - undisturbedMs) < 0.2, `${disturbedMs - undisturbedMs} ms`)
  }
})

test('a clock of the caller travels in no handle', () => {
  assert.deepEqual(clockHandle({ nowMs: () => 0 }), { kind: 'custom' })
  assert.equal(clockFromHandle({ kind: 'custom' }), undefined)
})

test('a delay beyond 2^31 ms does not fire at once', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { after } = preciseClock()
  let fired = 0
  after?.(30 * 86_400_000, () => {
    fired++
  })
  t.mock.timers.tick(2 ** 31 - 1)
  assert.equal(fired, 0)
  t.mock.timers.tick(30 * 86_400_000 - 2 ** 31)
  assert.equal(fired, 0)
  t.mock.timers.tick(1)
  assert.equal(fired, 1)
  const cancel = after?.(10, () => {
    fired++
  })
  cancel?.()
  t.mock.timers.tick(100)
  assert.equal(fired, 1)
})

test('a timer may move the time on, and it stays there', () => {
  const clock = manualClock(0)
  const fired: number[] = []
  clock.after(10, () => clock.advance(100))
  for (const ms of [15, 50, 110, 111]) clock.after(ms, () => fired.push(clock.nowMs()))
  clock.advance(20)
  assert.deepEqual([clock.nowMs(), fired], [110, [15, 50, 110]])
  clock.set(5)
  assert.equal(clock.nowMs(), 5)
})

test('the timers of a manual clock in another thread fire when it is moved here', async () => {
  const clock = manualClock(0)
  const limiter = createLimiter(tokenBucket({ limit: 1, window: '1s' }), { clock })
  limiter.take('k')
  const program = `
    const { workerData: { library, handle }, parentPort } = require('node:worker_threads')
    import(library).then(async ({ attachLimiter }) => {
      const waits = ['k', 'k'].map((key) => attachLimiter(handle).wait(key))
      parentPort.once('message', () => undefined)
      parentPort.postMessage('waiting')
      for (const wait of waits) parentPort.postMessage((await wait).allowed)
    })`
  const library = new URL('../index.js', import.meta.url).href
  const worker = new Worker(program, { eval: true, workerData: { library, handle: limiter.handle() } })
  const seen: unknown[] = []
  try {
    for await (const [message] of on(worker, 'message')) {
      seen.push(message)
      if (seen.length === 3) break
      clock.advance(1000)
    }
  } finally {
    await worker.terminate()
  }
  assert.deepEqual([seen, clock.nowMs()], [['waiting', true, true], 2000])
})

test('a timer of a clock that is moved elsewhere never fires within the call that sets it, due or not', async () => {
  const here = manualClock(1000)
  const there = clockFromHandle(clockHandle(here))
  const fired: string[] = []
  there?.after?.(0, () => fired.push('at once'))
  there?.after?.(5, () => fired.push('later'))
  const cancel = there?.after?.(5, () => fired.push('never'))
  assert.equal(fired.join(), '')
  await nextTurn()
  there?.after?.(0, () => fired.push('second'))
  assert.equal(fired.join(), 'at once')
  await nextTurn()
  cancel?.()
  here.advance(5)
  await nextTurn()
  assert.deepEqual(fired, ['at once', 'second', 'later'])
})

test('where threads count time from their own start, their clocks are related by the time of their start', (t) => {
  t.mock.method(process, 'hrtime', () => {
    const ms = performance.now()
    return [Math.floor(ms / 1e3), Math.round((ms % 1e3) * 1e6)]
  })
  const clock = preciseClock()
  const handle = clockHandle(clock)
  assert.ok(handle.kind === 'precise')
  // As a thread has it that began an hour before.
  const attached = clockFromHandle({ ...handle, monotonicMs: handle.monotonicMs - 3_600_000 })
  assert.ok(Math.abs((attached?.nowMs() ?? 0) - clock.nowMs() - 3_600_000) < 60_000)
  assert.equal(handle.monotonicMs, performance.timeOrigin)
})

test('a timer that keeps no process alive fires unless it is cancelled', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const fired: string[] = []
  afterUnheld(1_000, () => fired.push('kept'))
  const cancel = afterUnheld(1_000, () => fired.push('cancelled'))
  cancel()
  t.mock.timers.tick(999)
  assert.deepEqual(fired, [])
  t.mock.timers.tick(1)
  assert.deepEqual(fired, ['kept'])
})

test('it keeps no process alive, and Node takes it however long it is', (t) => {
  const { mock } = t.mock.method(process, 'emitWarning', () => undefined)
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timers()
  const cancel = afterUnheld(366 * 86_400_000, () => undefined)
  assert.deepEqual([timers(), mock.callCount()], [before, 0])
  cancel()
})

const HOUR_MS = 3_600_000

function machine(hasUptime = true) {
  const at = { awakeMs: 5_000, wallMs: 1_760_000_000_000, bootMs: 90_000 }
  const time = { awakeMs: () => at.awakeMs, wallMs: () => at.wallMs, sinceBootMs: () => (hasUptime ? at.bootMs : undefined) }
  const pass = (ms: number): void => {
    for (const clock of ['awakeMs', 'wallMs', 'bootMs'] as const) at[clock] += ms
  }
  const sleep = (ms: number): void => {
    at.wallMs += ms
    at.bootMs += ms
  }
  return { at, pass, sleep, clock: preciseFrom(at.wallMs - at.awakeMs, time) }
}

test('a bucket has refilled on a machine that slept', () => {
  const { pass, sleep, clock } = machine()
  const limiter = createLimiter(tokenBucket({ limit: 10, window: '1h' }), { clock })
  for (let i = 0; i < 2; i++) {
    assert.equal(limiter.take('k', 10).allowed, true)
    assert.equal(limiter.take('k').allowed, false)
    pass(1_000)
    sleep(8 * HOUR_MS)
  }
  limiter.close()
})

test('a wall clock that is set moves nothing, and the next sleep is seen', () => {
  const { at, pass, sleep, clock } = machine()
  const fromMs = clock.nowMs()
  for (const ms of [HOUR_MS, -2 * HOUR_MS, 400]) {
    at.wallMs += ms
    pass(1_000)
    clock.nowMs()
  }
  assert.equal(clock.nowMs() - fromMs, 3_000)
  sleep(HOUR_MS + 300)
  pass(1_000)
  assert.equal(clock.nowMs() - fromMs, 4_000 + HOUR_MS)
})

test('without a clock that cannot be set no sleep is believed', () => {
  const { pass, sleep, clock } = machine(false)
  const fromMs = clock.nowMs()
  sleep(HOUR_MS)
  pass(1_000)
  assert.equal(clock.nowMs() - fromMs, 1_000)
})
