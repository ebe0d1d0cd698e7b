import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Search, type SearchBounds, type Stepwise } from './search.js'
import { Walk } from './walk.js'

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
