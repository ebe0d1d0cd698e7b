import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mock, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { attachLimiter, createLimiter, restoreLimiter } from '../create-limiter.js'
import { allOf } from '../policy/all-of.js'
import { fixedWindow, slidingLog, tokenBucket } from '../policy/single-policy.js'
import { manualClock, unheldClock, wallClock, wallOver } from './clock.js'

const HOUR_MS = 3_600_000
const DAY = fixedWindow({ limit: 10, window: 'day', timeZone: 'Europe/Rome' })
/** In Rome it is 15:00, UTC + 2. */
const THREE_PM_MS = Date.UTC(2026, 8, 15, 13)

/** Lets the wall clock be set while nothing else moves. */
function steppedWall(t: { after(fn: () => void): void }, startMs: number): (byMs: number) => void {
  let nowMs = startMs
  mock.method(Date, 'now', () => nowMs)
  t.after(() => mock.restoreAll())
  return (byMs) => {
    nowMs += byMs
  }
}

test('after a step of +10 h a window of the calendar is that of the new time, at once and in all threads', (t) => {
  const step = steppedWall(t, THREE_PM_MS)
  using limiter = createLimiter(DAY)
  using other = attachLimiter(limiter.handle())
  limiter.take('k', 4)
  assert.deepEqual([limiter.peek('k').remaining, limiter.peek('k').resetAfterMs], [6, 9 * HOUR_MS])
  step(10 * HOUR_MS)
  for (const each of [limiter, other])
    assert.deepEqual([each.peek('k').remaining, each.take('k').resetAfterMs], [each === other ? 9 : 10, 23 * HOUR_MS])
})

test('a step within the day grants nothing and takes nothing, and the window ends at midnight of the new time', (t) => {
  const step = steppedWall(t, THREE_PM_MS)
  using limiter = createLimiter(DAY)
  limiter.take('k', 10)
  step(-10 * HOUR_MS)
  const { allowed, retryAfterMs } = limiter.take('k')
  assert.deepEqual([allowed, retryAfterMs], [false, 19 * HOUR_MS])
  step(18 * HOUR_MS)
  assert.equal(limiter.take('k').retryAfterMs, HOUR_MS)
})

test('a step of -10 h over midnight holds a key no longer than the step, grants nothing, and holds no other key', (t) => {
  const step = steppedWall(t, THREE_PM_MS + 10 * HOUR_MS)
  using limiter = createLimiter(DAY)
  limiter.take('k')
  step(-10 * HOUR_MS)
  const { allowed, retryAfterMs } = limiter.take('k')
  assert.deepEqual([allowed, retryAfterMs], [false, 9 * HOUR_MS])
  assert.equal(limiter.take('another').allowed, true)
  step(9 * HOUR_MS)
  assert.equal(limiter.take('k', 9).allowed, true)
  assert.equal(limiter.take('k').allowed, false)
})

test('limiters of other policies do not follow a step of the wall clock', (t) => {
  const step = steppedWall(t, THREE_PM_MS)
  for (const policy of [
    tokenBucket({ limit: 5, window: '1h' }),
    fixedWindow({ limit: 5, window: '1h' }),
    slidingLog({ limit: 5, window: '1h' }),
  ]) {
    using limiter = createLimiter(policy)
    limiter.take('k', 5)
    for (const ms of [10 * HOUR_MS, -20 * HOUR_MS]) {
      step(ms)
      assert.equal(limiter.take('k').allowed, false, policy.name)
    }
    step(10 * HOUR_MS)
  }
})

for (const policy of [
  fixedWindow({ limit: 5, window: '24h' }),
  allOf([fixedWindow({ limit: 5, window: '7d' }), fixedWindow({ limit: 5, window: '24h', name: 'second' })]),
]) {
  test(`${policy.name} of a day or longer follows the wall clock, to UTC midnight of the new time`, (t) => {
    const step = steppedWall(t, THREE_PM_MS)
    using limiter = createLimiter(policy)
    limiter.take('k', 5)
    step(-5 * HOUR_MS)
    assert.equal(limiter.take('k').allowed, false)
    step(16 * HOUR_MS)
    const last = limiter.peek('k')
    assert.equal((last.parts?.at(-1) ?? last).remaining, 5)
    assert.equal((last.parts?.at(-1) ?? last).resetAfterMs, 0)
  })
}

test('a limiter that was restored follows the wall clock as well', (t) => {
  const step = steppedWall(t, THREE_PM_MS)
  const before = createLimiter(DAY)
  before.take('k', 10)
  using limiter = restoreLimiter(before.snapshot())
  assert.equal(limiter.take('k').allowed, false)
  step(10 * HOUR_MS)
  assert.equal(limiter.take('k', 10).allowed, true)
})

test('a wait for the next window hears of a step forward within a minute, and waits on after a step back', async () => {
  let offsetMs = 0
  const real = manualClock(THREE_PM_MS)
  const clock = wallOver({ nowMs: () => real.nowMs() + offsetMs, after: (ms, fn) => real.after(ms, fn) })
  using limiter = createLimiter(DAY, { clock })
  limiter.take('k', 10)
  let isOver = false
  const waiting = limiter.wait('k').finally(() => {
    isOver = true
  })
  offsetMs = -HOUR_MS
  for (let ms = 0; ms < 9.5 * HOUR_MS; ms += 60_000) real.advance(60_000)
  await Promise.resolve()
  assert.equal(isOver, false)
  offsetMs = 0
  real.advance(60_000)
  assert.equal((await waiting).allowed, true)
})

test('a worker thread reads the same wall clock, and timers of unheld ones keep no process alive', async () => {
  const clock = wallClock()
  const text = `
    const { parentPort, workerData } = require('node:worker_threads')
    import(workerData.library).then(({ attachLimiter }) => {
      const limiter = attachLimiter(workerData.handle)
      parentPort.postMessage(limiter.take('k').remaining)
      limiter.close()
    })`
  using limiter = createLimiter(DAY, { clock })
  limiter.take('k', 4)
  const worker = new Worker(text, {
    eval: true,
    workerData: { library: new URL('../index.js', import.meta.url).href, handle: limiter.handle() },
  })
  const remaining = await new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  assert.equal(remaining, 5)
  await worker.terminate()
  const cancel = unheldClock(clock).after?.(60_000, () => undefined)
  assert.equal(process.getActiveResourcesInfo().includes('Timeout'), false)
  cancel?.()
})

const PROGRAM = fileURLToPath(import.meta.resolve('sluicegate-testkit/runtimes/stepped-process.js'))
const DAY_MS = 86_400_000

test('a process whose wall clock is stepped by a day and back follows it with a window of the calendar', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'stepped-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const stepFile = join(folder, 'step')
  writeFileSync(stepFile, '+0h')
  // The wrapper finds the library; what it says of the time the file says, and is read again each time.
  const inShell = ['sh', '-c', 'unset FAKETIME; exec "$0" "$@"', process.execPath, PROGRAM, stepFile]
  const env = { ...process.env, FAKETIME_TIMESTAMP_FILE: stepFile, FAKETIME_NO_CACHE: '1' }
  const text = execFileSync('faketime', ['--exclude-monotonic', '-f', '+0h', ...inShell], { env, encoding: 'utf8' })
  const answers = JSON.parse(text) as [string, string, boolean, number][]
  const untilMidnight = (at: string): number => DAY_MS - (Date.parse(at) % DAY_MS)
  const [first, second, dayLater, dayBefore] = answers as [
    (typeof answers)[0],
    (typeof answers)[0],
    (typeof answers)[0],
    (typeof answers)[0],
  ]
  assert.deepEqual([first[2], second[2], dayLater[2], dayBefore[2]], [true, false, true, false])
  // Denied until the end of the first day, at which the window begins that it was used in last; there six of ten are spent.
  assert.ok(Math.abs(second[3] - untilMidnight(second[0])) < 1000, `${second[3]} ms`)
  assert.ok(Math.abs(dayBefore[3] - untilMidnight(dayBefore[0]) - DAY_MS) < 1000, `${dayBefore[3]} ms`)
  assert.ok(Date.parse(dayLater[0]) - Date.parse(first[0]) >= DAY_MS)
})
