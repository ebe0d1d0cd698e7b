import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { CircuitBreaker } from './circuit-breaker.js'

/** Fails once, if it lets a call try. */
function fail(breaker: CircuitBreaker, nowMs: number): boolean {
  const round = breaker.attempt(nowMs)
  assert.notEqual(round, undefined)
  return breaker.failed(nowMs, round as number)
}

function opened(random: () => number = () => 0): CircuitBreaker {
  const breaker = new CircuitBreaker(random)
  for (let i = 0; i < 3; i++) fail(breaker, 0)
  return breaker
}

test('a breaker opens with the third failure in a row, and says so once', () => {
  const breaker = new CircuitBreaker()
  assert.deepEqual([fail(breaker, 0), fail(breaker, 0), fail(breaker, 0)], [false, false, true])
  assert.equal(breaker.isOpen, true)
  assert.equal(breaker.attempt(0), undefined)
})

test('a call that failed for several callers is one failure', () => {
  const breaker = new CircuitBreaker()
  const [one, other, third] = [{}, {}, {}]
  const opens = [one, one, other, one, other, third].map((call) => breaker.failed(0, breaker.attempt(0) as number, undefined, call))
  assert.deepEqual(opens, [false, false, false, false, false, true])
})

test('an answer between failures begins the count anew', () => {
  const breaker = new CircuitBreaker()
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

test('the pause doubles with each probe that fails, up to 5 s', () => {
  const breaker = opened()
  const pauses: number[] = []
  let nowMs = 0
  for (let i = 0; i < 9; i++) {
    const leftMs = breaker.leftMs(nowMs)
    pauses.push(leftMs)
    nowMs += leftMs
    assert.equal(fail(breaker, nowMs), false)
  }
  assert.deepEqual(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000])
})

test('a pause is shortened at random, by at most half', () => {
  const random = new Random(1)
  const pauses = Array.from({ length: 1000 }, () => opened(() => random.fraction()).leftMs(0))
  assert.ok(pauses.every((ms) => ms > 50 && ms <= 100))
  assert.ok(Math.min(...pauses) < 52 && Math.max(...pauses) > 98)
})

test('calls that fail together are one fault: they do not make the pause longer', () => {
  const breaker = new CircuitBreaker(() => 0)
  const rounds = Array.from({ length: 256 }, () => breaker.attempt(0) as number)
  const hasOpened = rounds.map((round) => breaker.failed(1, round))
  assert.equal(hasOpened.filter(Boolean).length, 1)
  assert.equal(breaker.leftMs(1), 100)
})

test('what was sent before the pause and fails during a probe says nothing of the probe', () => {
  const breaker = new CircuitBreaker(() => 0)
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
