import assert from 'node:assert/strict'
import { test } from 'node:test'
import { afterUnheld } from './clock.js'

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
