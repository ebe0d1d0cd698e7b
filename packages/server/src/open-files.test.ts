import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { openFiles } from './open-files.js'

function linesOf(t: TestContext, canOpen: () => boolean, most: number | undefined): string[] {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const lines: string[] = []
  const part = openFiles(pino({}, { write: (line: string) => void lines.push(line) }), 1_000, canOpen, most)
  part.ready?.()
  t.mock.timers.tick(5_000)
  part.stop?.({ drainMs: 0, finishMs: 0 })
  return lines
}

test('that no more files can be opened is in the log, once', (t) => {
  const lines = linesOf(t, () => false, undefined)
  assert.equal(lines.length, 1)
  assert.match(lines[0] as string, /closed without an answer: too many files are open: raise the limit/)
})

test('a limit below max-connections is said at the start; enough is not', (t) => {
  assert.match(linesOf(t, () => true, 1_000).join(), /^[^\n]*"openFiles":1000,"maxConnections":1000[^\n]*\n$/)
})

test('with room for all connections nothing is said', (t) =>
  assert.deepEqual(
    linesOf(t, () => true, 65_536),
    [],
  ))
