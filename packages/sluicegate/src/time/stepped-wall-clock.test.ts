import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const PROGRAM = fileURLToPath(import.meta.resolve('sluicegate-testkit/runtimes/stepped-process.js'))
const DAY_MS = 86_400_000

test('a process whose wall clock is stepped by a day and back follows it with a window of the calendar', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'stepped-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const stepFile = join(folder, 'step')
  writeFileSync(stepFile, '+0h')
  // The wrapper finds the library; what it says of the time the file says, and is read again each time.
  const inShell = ['sh', '-c', 'unset FAKETIME; exec "$0" "$@"', process.execPath, PROGRAM, stepFile]
  const env = { ...process.env, FAKETIME_TIMESTAMP_FILE: stepFile, FAKETIME_NO_CACHE: '1' }
  const text = execFileSync('faketime', ['--exclude-monotonic', '-f', '+0h', ...inShell], { env, encoding: 'utf8' })
  const answers = JSON.parse(text) as [string, string, boolean, number][]
  const untilMidnight = (at: string): number => DAY_MS - (Date.parse(at) % DAY_MS)
  const [first, second, dayLater, dayBefore] = answers as [
    (typeof answers)[0],
    (typeof answers)[0],
    (typeof answers)[0],
    (typeof answers)[0],
  ]
  assert.deepEqual([first[2], second[2], dayLater[2], dayBefore[2]], [true, false, true, false])
  // Denied until the end of the first day, at which the window begins that it was used in last; there six of ten are spent.
  assert.ok(Math.abs(second[3] - untilMidnight(second[0])) < 1000, `${second[3]} ms`)
  assert.ok(Math.abs(dayBefore[3] - untilMidnight(dayBefore[0]) - DAY_MS) < 1000, `${dayBefore[3]} ms`)
  assert.ok(Date.parse(dayLater[0]) - Date.parse(first[0]) >= DAY_MS)
})
