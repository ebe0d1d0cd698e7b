import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { Turns } from './turns.js'

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('what a driver loses for ever holds its turn for some seconds, and what ends late does not end the turn of another one', async () => {
  let nowMs = 0
  const clock = mock.method(performance, 'now', () => nowMs)
  mock.timers.enable({ apis: ['setTimeout'] })
  const turns = new Turns(2)
  const begun: number[] = []
  const ends: (() => void)[] = []
  const run = (name: number): Promise<number> =>
    turns.run(async () => {
      begun.push(name)
      await new Promise<void>((resolve) => {
        ends[name] = resolve
      })
      return name
    })
  const works = [0, 1, 2, 3, 4].map(run)
  await settled()
  assert.deepEqual(begun, [0, 1])
  ends[1]?.()
  assert.equal(await works[1], 1)
  await settled()
  assert.deepEqual(begun, [0, 1, 2])
  nowMs = 3999
  mock.timers.tick(3999)
  await settled()
  assert.deepEqual(begun, [0, 1, 2])
  nowMs = 4001
  for (let i = 0; i < 3; i++) mock.timers.tick(1)
  await settled()
  assert.deepEqual(begun, [0, 1, 2, 3, 4])
  // Two are under way, and two are lost.
  const last = run(5)
  for (const late of [0, 2]) ends[late]?.()
  await settled()
  assert.deepEqual(begun, [0, 1, 2, 3, 4])
  ends[3]?.()
  await settled()
  assert.deepEqual(begun, [0, 1, 2, 3, 4, 5])
  for (const end of [4, 5]) ends[end]?.()
  assert.equal(await last, 5)
  mock.timers.reset()
  clock.mock.restore()
})
