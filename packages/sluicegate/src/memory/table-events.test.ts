import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter, fixedWindow, manualClock } from '../index.js'

freshWarnings()

test('the first new key without room causes one process warning, which says what to do', async () => {
  const warnings: NodeJS.ErrnoException[] = []
  // Others may be on their way.
  const listen = (warning: NodeJS.ErrnoException): void => void (warning.code === 'SLUICEGATE_TABLE_FULL' && warnings.push(warning))
  process.on('warning', listen)
  for (const name of ['login', 'sign-up']) {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1d', name }), { clock: manualClock(), maxKeys: 10 })
    for (let i = 0; i < 100; i++) limiter.take(`key ${i}`)
    assert.ok(limiter.stats().refusals > 0)
  }
  await new Promise(setImmediate)
  process.off('warning', listen)
  assert.equal(warnings.length, 1)
  assert.match(
    warnings[0]?.message ?? '',
    /^limiter "login" has no room for a new key: it tracks \d+ keys, .* Raise maxKeys, or choose a coarser key; see node_modules\/sluicegate\/docs\/warnings/,
  )
})
