import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { inLaterTurn, isInputTimeOver } from './later-turns.js'

function workFor(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs; );
}

test('input of a turn has its time once, and again in the next turn', async () => {
  await nextTurn()
  assert.equal(isInputTimeOver(), false)
  workFor(1)
  assert.equal(isInputTimeOver(), true)
  assert.equal(isInputTimeOver(), true)
  await nextTurn()
  assert.equal(isInputTimeOver(), false)
})

test('calls that wait run in their order, a few in a turn, and each turn runs one at least', async () => {
  const ran: number[] = []
  const alone: boolean[] = []
  let turns = 0
  for (let i = 0; i < 6; i++)
    inLaterTurn((isAlone) => {
      ran.push(i)
      alone.push(isAlone)
      workFor(1)
    })
  assert.deepEqual(ran, [])
  while (ran.length < 6 && turns < 100) {
    const before = ran.length
    await nextTurn()
    assert.ok(ran.length - before <= 1)
    turns++
  }
  assert.deepEqual(ran, [0, 1, 2, 3, 4, 5])
  assert.deepEqual(alone, [false, false, false, false, false, true])
})
