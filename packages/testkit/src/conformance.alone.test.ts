import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { longTest } from './run-length.js'

const PROGRAM = fileURLToPath(new URL('./faulty-limiter.js', import.meta.url))
const FAULTS = JSON.parse(run().stdout) as readonly string[]

/** Each runs the whole suite: one sound limiter and a few faults in every run. */
const isInEveryRun = (i: number): boolean => i % 20 === 0

for (const [i, fault] of FAULTS.entries()) {
  const isNone = fault.startsWith('none, ')
  const inTime = isInEveryRun(i) ? test : longTest
  inTime(`the conformance suite ${isNone ? `passes where there is ${fault}` : `notices ${fault}`}`, () => {
    const { status, stdout } = run(fault)
    const failures = Number(/^# fail (\d+)$/m.exec(stdout)?.[1])
    assert.equal(failures > 0, !isNone, stdout.slice(-2000))
    assert.equal(status !== 0, !isNone)
  })
}

test('there are faults to notice', () => {
  assert.ok(FAULTS.length > 30)
})

function run(...args: readonly string[]): { readonly status: number | null; readonly stdout: string } {
  // Without the variable that tells a child of the test runner to report to it.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env
  return spawnSync(process.execPath, ['--test-reporter=tap', PROGRAM, ...args], {
    encoding: 'utf8',
    env,
    maxBuffer: 2 ** 26,
    timeout: 60_000,
  })
}
