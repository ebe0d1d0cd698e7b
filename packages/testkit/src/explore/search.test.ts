import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Outcome } from './call.js'
import { PLAIN } from './explored-policy.js'
import { emptyLedger, isWithinBudget, type Ledger, NEVER } from './ledger.js'
import { explanation, type History } from './linearization.js'
import { RateModel } from './models.js'
import { Search, type SearchBounds, type Stepwise, Walk } from './search.js'

/** A thread of `steps` steps that records each. */
class Counting implements Stepwise {
  private done = 0
  private readonly name: string
  private readonly length: number
  private readonly log: string[]

  constructor(name: string, length: number, log: string[]) {
    this.name = name
    this.length = length
    this.log = log
  }

  reset(): void {
    this.done = 0
  }

  get isDone(): boolean {
    return this.done === this.length
  }

  run(steps: number): number {
    const before = this.done
    while (this.done < this.length && this.done < before + steps) {
      this.log.push(this.name)
      this.done++
    }
    return this.done - before
  }
}

const ALL = 1e6

function orders(lengths: readonly number[], bounds: Partial<SearchBounds>): { all: string[]; search: Search } {
  const all: string[] = []
  const log: string[] = []
  const threads = lengths.map((length, i) => new Counting('abc'[i] as string, length, log))
  const search = new Search(threads, { preemptions: 0, deaths: 0, most: ALL, ...bounds }, () => {
    log.length = 0
    for (const thread of threads) thread.reset()
    search.runAll()
    all.push(log.join(''))
    return true
  })
  search.run()
  return { all, search }
}

test('without preemptions there is a schedule for each order of the threads', () => {
  assert.deepEqual(orders([2, 2], {}).all, ['aabb', 'bbaa'])
  assert.equal(orders([2, 2, 2], {}).all.length, 6)
})

test('with preemptions enough every interleaving is run, and none twice', () => {
  const { all } = orders([3, 3], { preemptions: 6 })
  assert.equal(all.length, 20, '6 choose 3')
  assert.equal(new Set(all).size, 20)
  assert.equal(new Set(orders([2, 2, 2], { preemptions: 6 }).all).size, 90, '6! / (2! 2! 2!)')
})

test('one preemption allows one switch away from a thread that could go on', () => {
  assert.deepEqual(orders([2, 2], { preemptions: 1 }).all, ['aabb', 'abba', 'bbaa', 'baab'])
})

test('a thread is stopped for good at each of its steps in turn, and the others still run to their end', () => {
  assert.deepEqual(orders([3, 1], { deaths: 1 }).all.sort(), ['aaab', 'aab', 'ab', 'baaa', 'baa', 'ba'].sort())
})

test('a search that is cut short says so', () => {
  const search = new Search([new Counting('a', 3, []), new Counting('b', 3, [])], { preemptions: 3, deaths: 0, most: 2 }, () => {
    search.runAll()
    return true
  })
  assert.equal(search.run(), false)
  assert.equal(search.schedules, 2)
})

test('a search that is stopped keeps the schedule that it stopped at', () => {
  let seen = 0
  const threads = [new Counting('a', 2, []), new Counting('b', 2, [])]
  const search = new Search(threads, { preemptions: 1, deaths: 0, most: ALL }, () => {
    for (const thread of threads) thread.reset()
    search.runAll()
    return ++seen < 2
  })
  search.run()
  assert.deepEqual(
    search.stretchesRun.map(({ thread, steps }) => [thread, steps]),
    [
      [0, 1],
      [1, 2],
      [0, 1],
    ],
  )
})

test('a walk draws whole schedules, the same ones from the same seed, with more switches than a search is given', () => {
  const drawn = (seed: number): string[] => {
    const all: string[] = []
    const log: string[] = []
    const threads = [new Counting('a', 30, log), new Counting('b', 30, log)]
    const walk = new Walk(threads, { walks: 200, seed }, () => {
      log.length = 0
      for (const thread of threads) thread.reset()
      walk.runAll()
      if (!walk.kills) assert.equal(log.length, 60)
      all.push(log.join(''))
      return true
    })
    walk.run()
    return all
  }
  assert.deepEqual(drawn(1), drawn(1))
  assert.notDeepEqual(drawn(1), drawn(2))
  assert.ok(drawn(1).some((schedule) => (schedule.match(/ab/g) ?? []).length > 3))
  assert.ok(
    drawn(1).some((schedule) => schedule.length < 60),
    'some stop a thread for good',
  )
})

const NOW = 10_000

function taken(thread: number, value: number, when: readonly [number, number], more: Partial<Outcome> = {}): Outcome {
  const call = { verb: 'take', key: 0, nowUs: NOW, amount: 1 } as const
  return { call, thread, began: when[0], ended: when[1], why: 'answered', value, more: Number.NaN, forgotten: -1, ...more }
}

function owing(debt: number): Ledger {
  return { ...emptyLedger(PLAIN, 2), keys: [new RateModel(PLAIN, NOW + debt), undefined] }
}

function history(outcomes: readonly Outcome[], more: Partial<History> = {}): History {
  return { before: emptyLedger(PLAIN, 2), outcomes, takeoverHighUs: NEVER, evictions: 0, uncounted: 0, mayRefuse: false, ...more }
}

test('takes at once are explained by one after the other', () => {
  const end = explanation(history([taken(0, 2000, [0, 2]), taken(1, 1000, [1, 1])]))
  assert.equal(end?.keys[0]?.debtAt(NOW), 2000)
})

test('a charge that was lost has no explanation', () => {
  assert.equal(explanation(history([taken(0, 1000, [0, 2]), taken(1, 1000, [1, 1])])), undefined)
})

test('a call that had ended before another began comes first', () => {
  assert.equal(explanation(history([taken(0, 2000, [0, 0]), taken(1, 1000, [1, 1])])), undefined)
})

test('a thread stopped for good may have been charged or not', () => {
  const stopped = taken(0, 0, [0, Number.POSITIVE_INFINITY])
  assert.notEqual(explanation(history([stopped, taken(1, 1000, [1, 1])])), undefined)
  assert.notEqual(explanation(history([stopped, taken(1, 2000, [1, 1])])), undefined)
  assert.equal(explanation(history([stopped, taken(1, 3000, [1, 1])])), undefined)
})

test('a key may be forgotten only as often as evictions were counted, by another key, and never when it is denied', () => {
  const before = owing(2000)
  const other = taken(0, 1000, [0, 0], { call: { verb: 'take', key: 1, nowUs: NOW, amount: 1 } })
  const again = taken(1, 1000, [1, 1])
  assert.equal(explanation(history([other, again], { before })), undefined)
  assert.notEqual(explanation(history([other, again], { before, evictions: 1 })), undefined)
  assert.equal(explanation(history([again], { before, evictions: 1 })), undefined)
  const denied = owing(3000)
  assert.equal(explanation(history([other, again], { before: denied, evictions: 1 })), undefined)
})

test('a newcomer whose clock is behind owes up to the time by which a key was forgotten', () => {
  const late = taken(0, 1500, [0, 0], { why: 'LATE', call: { verb: 'take', key: 0, nowUs: NOW, amount: 2 } })
  assert.notEqual(explanation(history([late], { takeoverHighUs: NOW + 1500 })), undefined)
  assert.equal(explanation(history([late], { takeoverHighUs: NOW + 1400 })), undefined)
})

test('the budget holds in every interval of clock readings', () => {
  const at = (nowUs: number): { nowUs: number; tokens: number } => ({ nowUs, tokens: 1 })
  assert.ok(isWithinBudget([at(0), at(0), at(0), at(1000)], PLAIN, 0))
  assert.ok(!isWithinBudget([at(0), at(0), at(0), at(999)], PLAIN, 0))
  assert.ok(isWithinBudget([at(0), at(0), at(0), at(999)], PLAIN, 1))
  assert.ok(!isWithinBudget([at(5000), at(9000), at(9000), at(9000), at(9000)], PLAIN, 0))
})
