import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter, fixedWindow, manualClock } from '../index.js'

freshWarnings()

test('the first new key without room causes one process warning, which says what to do', async () => {
  const warned = once(process, 'warning')
  let warnings = 0
  process.on('warning', ({ name }) => {
    if (name === 'SluicegateWarning') warnings++
  })
  for (const name of ['login', 'sign-up']) {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1d', name }), { clock: manualClock(), maxKeys: 10 })
    for (let i = 0; i < 100; i++) limiter.take(`key ${i}`)
    assert.ok(limiter.stats().refusals > 0)
  }
  const [{ code, message }] = (await warned) as [Error & { code: string }]
  assert.equal(code, 'SLUICEGATE_TABLE_FULL')
  assert.match(
    message,
    /^limiter "login" has no room for a new key: it tracks \d+ keys, .* Raise maxKeys, or choose a coarser key; see node_modules\/sluicegate\/docs\/warnings/,
  )
  await new Promise(setImmediate)
  assert.equal(warnings, 1)
})
