import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { answersOf } from './awaitable.js'

test('values are there at once, and one promise makes all of them come later', async () => {
  assert.deepEqual(
    answersOf(['a', 'b'], (item, i) => item + i),
    ['a0', 'b1'],
  )
  assert.deepEqual(await answersOf([1, 2], (item) => (item === 1 ? Promise.resolve(item) : item)), [1, 2])
})

test('promises before a call that throws are handled: nothing is left to end the process', async (t) => {
  const unhandled = new AbortController()
  t.after(() => unhandled.abort())
  const rejected = once(process, 'unhandledRejection', { signal: unhandled.signal }).then(
    () => assert.fail('a promise was left'),
    () => undefined,
  )
  assert.throws(
    () =>
      answersOf([1, 2], (item) => {
        if (item === 2) throw new RangeError('second')
        return Promise.reject(new Error('first'))
      }),
    RangeError,
  )
  await nextTurn()
  await nextTurn()
  unhandled.abort()
  await rejected
})
