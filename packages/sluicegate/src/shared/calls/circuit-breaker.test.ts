import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { CircuitBreaker } from './circuit-breaker.js'

const LOST_MS = 1000

/** Fails once, if it lets a call try. */
function fail(breaker: CircuitBreaker, nowMs: number): boolean {
  const round = breaker.attempt(nowMs)
  assert.notEqual(round, undefined)
  return breaker.failed(nowMs, round as number)
}

function opened(random: () => number = () => 0): CircuitBreaker {
  const breaker = new CircuitBreaker(LOST_MS, random)
  for (let i = 0; i < 3; i++) fail(breaker, 0)
  return breaker
}

test('a breaker opens with the third failure in a row, and says so once', () => {
  const breaker = new CircuitBreaker(LOST_MS)
  assert.deepEqual([fail(breaker, 0), fail(breaker, 0), fail(breaker, 0)], [false, false, true])
  assert.equal(breaker.isOpen, true)
  assert.equal(breaker.attempt(0), undefined)
})

test('a call that failed for several callers is one failure', () => {
  const breaker = new CircuitBreaker(LOST_MS)
  const [one, other, third] = [{}, {}, {}]
  const opens = [one, one, other, one, other, third].map((call) => breaker.failed(0, breaker.attempt(0) as number, undefined, call))
  assert.deepEqual(opens, [false, false, false, false, false, true])
})

test('an answer between failures begins the count anew', () => {
  const breaker = new CircuitBreaker(LOST_MS)
  for (let i = 0; i < 10; i++) {
    fail(breaker, i)
    fail(breaker, i)
    assert.equal(breaker.succeeded(), false)
  }
  assert.equal(breaker.isOpen, false)
})

test('after the pause one call at a time tries, and its answer closes the breaker', () => {
  const breaker = opened()
  assert.equal(breaker.leftMs(40), 60)
  assert.equal(breaker.attempt(99.9), undefined)
  assert.equal(breaker.leftMs(100), 0)
  assert.notEqual(breaker.attempt(100), undefined)
  assert.equal(breaker.attempt(100), undefined)
  assert.equal(breaker.leftMs(100), 1)
  assert.equal(breaker.succeeded(), true)
  assert.equal(breaker.leftMs(100), 0)
  assert.notEqual(breaker.attempt(100), undefined)
})

test('the pause doubles with each probe that fails, up to 2 s', () => {
  const breaker = opened()
  const pauses: number[] = []
  let nowMs = 0
  for (let i = 0; i < 9; i++) {
    const leftMs = breaker.leftMs(nowMs)
    pauses.push(leftMs)
    nowMs += leftMs
    assert.equal(fail(breaker, nowMs), false)
  }
  assert.deepEqual(pauses, [100, 200, 400, 800, 1600, 2000, 2000, 2000, 2000])
})

test('a pause is shortened at random, by at most half', () => {
  const random = new Random(1)
  const pauses = Array.from({ length: 1000 }, () => opened(() => random.fraction()).leftMs(0))
  assert.ok(pauses.every((ms) => ms > 50 && ms <= 100))
  assert.ok(Math.min(...pauses) < 52 && Math.max(...pauses) > 98)
})

test('calls that fail together are one fault: they do not make the pause longer', () => {
  const breaker = new CircuitBreaker(LOST_MS, () => 0)
  const rounds = Array.from({ length: 256 }, () => breaker.attempt(0) as number)
  const hasOpened = rounds.map((round) => breaker.failed(1, round))
  assert.equal(hasOpened.filter(Boolean).length, 1)
  assert.equal(breaker.leftMs(1), 100)
})

test('what was sent before the pause and fails during a probe says nothing of the probe', () => {
  const breaker = new CircuitBreaker(LOST_MS, () => 0)
  const before = breaker.attempt(0) as number
  for (let i = 0; i < 3; i++) fail(breaker, 0)
  assert.notEqual(breaker.attempt(100), undefined)
  breaker.failed(110, before)
  assert.equal(breaker.attempt(110), undefined, 'the probe is still on its way')
  assert.equal(breaker.succeeded(), true)
})

test('a call that was not made after all leaves the breaker as it was', () => {
  const breaker = opened()
  const round = breaker.attempt(100) as number
  breaker.untried(round)
  assert.equal(breaker.isOpen, true)
  assert.notEqual(breaker.attempt(100), undefined, 'another may try')
})

test('a server without calls is out for half a minute after the pause, and then nothing is known', () => {
  const breaker = opened()
  assert.deepEqual([breaker.isOutAt(0), breaker.isOutAt(30_099), breaker.isOutAt(30_100)], [true, true, false])
  assert.equal(breaker.isOpen, true, 'the next call is a probe')
  fail(breaker, 40_000)
  assert.equal(breaker.isOutAt(60_000), true)
  breaker.attempt(90_000)
  breaker.succeeded()
  assert.equal(breaker.isOutAt(90_000), false)
})

test('a probe whose call failed before, for another caller, has failed: the next one goes after the pause', () => {
  const breaker = new CircuitBreaker(LOST_MS, () => 0)
  const shared = {}
  breaker.failed(0, breaker.attempt(0) as number, undefined, shared)
  fail(breaker, 0)
  fail(breaker, 0)
  breaker.failed(150, breaker.attempt(100) as number, undefined, shared)
  assert.equal(breaker.leftMs(150), 200)
  assert.notEqual(breaker.attempt(350), undefined)
})

test('a probe that nobody reports is lost after a while, and its late failure says nothing of the next', () => {
  const breaker = opened()
  const lost = breaker.attempt(100) as number
  assert.equal(breaker.attempt(100 + LOST_MS - 1), undefined)
  assert.notEqual(breaker.attempt(100 + LOST_MS), undefined)
  breaker.failed(1200, lost)
  breaker.untried(lost)
  assert.equal(breaker.attempt(1200), undefined, 'the second probe is still on its way')
})

test('a clock that was put back holds the circuit open no longer than a pause', () => {
  const breaker = new CircuitBreaker(LOST_MS, () => 0)
  const hourMs = 3_600_000
  for (let i = 0; i < 3; i++) fail(breaker, hourMs)
  assert.notEqual(breaker.attempt(0), undefined)
})

/** What may happen next to a breaker, by its name: an event of a call made before, a new call, or time. */
type Step = (walk: Walk) => void

/** A breaker on its way, with the calls whose ends are open. */
interface Walk {
  readonly breaker: CircuitBreaker
  readonly calls: { readonly round: number; readonly call: object | undefined }[]
  nowMs: number
}

const SHARED = {}
const STEPS: Readonly<Record<string, Step>> = {
  call: (walk) => begin(walk, undefined),
  'shared call': (walk) => begin(walk, SHARED),
  'oldest fails': (walk) => end(walk, walk.calls.shift(), 'failed'),
  'newest fails': (walk) => end(walk, walk.calls.pop(), 'failed'),
  'newest is cancelled': (walk) => end(walk, walk.calls.pop(), 'untried'),
  'oldest is cancelled': (walk) => end(walk, walk.calls.shift(), 'untried'),
  'newest is lost': ({ calls }) => void calls.pop(),
  'oldest is answered': ({ calls, breaker }) => {
    if (calls.shift() !== undefined) breaker.succeeded()
  },
  'the pause ends': (walk) => {
    walk.nowMs += 5000
  },
}

function begin({ breaker, calls, nowMs }: Walk, call: object | undefined): void {
  const round = breaker.attempt(nowMs)
  if (round !== undefined) calls.push({ round, call })
}

function end({ breaker, nowMs }: Walk, call: Walk['calls'][number] | undefined, how: 'failed' | 'untried'): void {
  if (call === undefined) return
  if (how === 'untried') breaker.untried(call.round)
  else breaker.failed(nowMs, call.round, undefined, call.call)
}

/** The state by what can be seen of it, and what the calls under way know. */
function seen({ breaker, calls, nowMs }: Walk): string {
  const { failures, round } = breaker as unknown as { failures: number; round: number }
  const open = calls.map((call) => `${Math.max(-1, call.round - round)}${call.call === undefined ? '' : 's'}`)
  return `${Math.min(failures, 5)} ${breaker.isOpen} ${Math.sign(breaker.leftMs(nowMs))} ${open}`
}

test('from every state that calls, ends and time can lead to, an answering server closes the circuit again, and each probe is alone', () => {
  const known = new Set<string>()
  const queue: string[][] = [[]]
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) {
    const walk: Walk = { breaker: new CircuitBreaker(LOST_MS, () => 0), calls: [], nowMs: 0 }
    for (const name of path) STEPS[name]?.(walk)
    const state = seen(walk)
    if (known.has(state) || walk.calls.length > 3) continue
    known.add(state)
    for (const name of Object.keys(STEPS)) queue.push([...path, name])
    // Whatever else is under way never reports; its server answers from now on.
    const { breaker } = walk
    const { round } = breaker as unknown as { round: number }
    if (breaker.isOpen) assert.ok(walk.calls.filter((call) => call.round === round).length <= 1, `two probes after ${path}`)
    const nowMs = walk.nowMs + 5000
    assert.notEqual(breaker.attempt(nowMs), undefined, `nobody may call after ${path}`)
    breaker.succeeded()
    assert.equal(breaker.isOpen, false)
  }
  assert.ok(known.size > 100, `${known.size} states`)
})
