import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshKeys, madeKeys } from './key-row.js'
import { idleWalk, inOneLoop, inTurns, sink, walkOf } from './walk.js'

function counting(awaited: boolean, allow: (nth: number) => boolean) {
  const asked: string[] = []
  const take = (key: string): unknown => {
    asked.push(key)
    const answer = { allowed: allow(asked.length) }
    return awaited ? Promise.resolve(answer) : answer
  }
  return { asked, contender: { take, passed: (answer: unknown) => (answer as { allowed: boolean }).allowed, awaited } }
}

test('a walk takes exactly as often as asked, and counts what passed', async () => {
  const { asked, contender } = counting(false, (nth) => nth % 3 !== 0)
  const { allowed } = await inOneLoop(walkOf(contender, madeKeys(100)), 9)
  assert.equal(asked.length, 9)
  assert.equal(allowed, 6)
})

test('a walk goes on where it ended, so that all keys come', async () => {
  const { asked, contender } = counting(false, () => true)
  const walk = walkOf(contender, madeKeys(10))
  for (let i = 0; i < 50; i++) await walk(10)
  assert.equal(new Set(asked).size, 10)
})

test('an awaited walk counts a rejection as a denial', async () => {
  const refusing = { take: () => Promise.reject(new Error('denied')), passed: () => true, awaited: true }
  assert.equal((await inOneLoop(walkOf(refusing, madeKeys(1)), 5)).allowed, 0)
})

test('an awaited walk takes one after the other', async () => {
  const { asked, contender } = counting(true, () => true)
  assert.equal((await inOneLoop(walkOf(contender, madeKeys(1)), 7)).allowed, 7)
  assert.equal(asked.length, 7)
})

test('each turn takes its share and a turn of the event loop comes between', async () => {
  let turns = 0
  let watching = true
  const watch = (): void => {
    turns++
    if (watching) setImmediate(watch)
  }
  setImmediate(watch)
  const { asked, contender } = counting(false, () => true)
  const { allowed } = await inTurns(walkOf(contender, madeKeys(1)), 20, 4)
  watching = false
  assert.equal(asked.length, 80)
  assert.equal(allowed, 80)
  assert.ok(turns >= 19, `${turns} turns`)
})

test('the loop that is subtracted asks for the same keys and takes none', async () => {
  const row = madeKeys(10)
  assert.equal(await idleWalk(row)(3), 0)
  assert.equal(sink.last, row.at(2))
})

test('fresh keys are the same keys each time, in strings of their own', () => {
  const row = freshKeys(1_000)
  for (let i = 0; i < 5_000; i++) assert.ok(row.keys.includes(row.at(i)))
  assert.equal(row.at(3), row.at(3))
})
