import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { manualClock } from '../../index.js'
import { CallGuard } from './call-guard.js'

freshWarnings()

const closed = (): Promise<never> => Promise.reject(new Error('The client is closed'))

function guarded(): CallGuard {
  return new CallGuard({ serverOf: () => undefined, slotOf: () => undefined }, manualClock(), 100)
}

async function failed(guard: CallGuard): Promise<Error> {
  return guard.guarded('k', closed).then(assert.fail, (error) => error)
}

test('of a store that was given up before it ever answered the process is warned, once', async () => {
  const codes: unknown[] = []
  const note = (warning: Error & { code?: string }): unknown => codes.push(warning.code)
  process.on('warning', note)
  const well = guarded()
  await well.guarded('k', async () => 'yes')
  for (let i = 0; i < 3; i++) await failed(well)
  assert.deepEqual(codes, [])
  const warned = once(process, 'warning')
  for (let i = 0; i < 2; i++) {
    const silent = guarded()
    for (let n = 0; n < 3; n++) await failed(silent)
  }
  const [warning] = await warned
  assert.match(warning.message, /The client is closed.*is the client connected/)
  process.off('warning', note)
  assert.deepEqual(codes, ['SLUICEGATE_SILENT_STORE'])
})

test('with an open circuit, errors have the last failure as their cause', async () => {
  const guard = guarded()
  for (let n = 0; n < 3; n++) await failed(guard)
  const { message, cause } = await failed(guard)
  assert.match(message, /is not asked for now/)
  assert.match((cause as Error).message, /The client is closed/)
})
