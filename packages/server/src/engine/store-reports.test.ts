import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { reportOf } from './store-reports.js'
import { StoreRefusal } from './store-watch.js'

test('each report of an outage says what to do', () => {
  const lines: string[] = []
  const report = reportOf(pino({}, { write: (line: string) => void lines.push(line) }), 'the store')
  report({ isReachable: false, kind: 'lost', error: new Error('The client is offline'), outMs: 0 })
  report({ isReachable: false, kind: 'silent', error: new Error('no answer to a write in time'), outMs: 60_000 })
  report({ isReachable: false, kind: 'refused', error: new StoreRefusal('OOM', { mend: 'raise maxmemory' }), outMs: 0 })
  const mends = lines.map((line) => (JSON.parse(line) as { mend: string }).mend)
  assert.match(mends.join('\n'), /^see that its server runs, .*address is right.*\nsee its server, .*\nraise maxmemory$/)
})
