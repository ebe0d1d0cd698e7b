import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { longTest } from './run-length.js'

const PROGRAM = fileURLToPath(new URL('./faulty-limiter.js', import.meta.url))
/** A test that failed, in the middle of a run. */
const FAILED = /^ *not ok /m
const FAULTS = JSON.parse((await run()).stdout) as readonly string[]

/** Each runs the suite: in every run the sound limiter with the shortest one, and a fault. */
const isInEveryRun = (i: number): boolean => i % 20 === 5

for (const [i, fault] of FAULTS.entries()) {
  const isNone = fault.startsWith('none, ')
  const inTime = isInEveryRun(i) ? test : longTest
  inTime(`the conformance suite ${isNone ? `passes where there is ${fault}` : `notices ${fault}`}`, async () => {
    const { status, stdout } = await run(fault)
    assert.equal(FAILED.test(stdout), !isNone, stdout.slice(-2000))
    if (isNone) assert.equal(status, 0)
  })
}

test('there are faults to notice', () => {
  assert.ok(FAULTS.length > 30)
})

/** Until it ends, or a test of it has failed. */
function run(...args: readonly string[]): Promise<{ readonly status: number | null; readonly stdout: string }> {
  // Without the variable that tells a child of the test runner to report to it. The suite in its short form has to notice each fault.
  const { NODE_TEST_CONTEXT: _context, SLUICEGATE_TEST_RUN: _run, ...env } = process.env
  const child = spawn(process.execPath, ['--test-reporter=tap', PROGRAM, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  return new Promise((resolve, reject) => {
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (FAILED.test(text)) child.kill('SIGKILL')
    })
    child.on('error', reject).on('close', (status) => resolve({ status, stdout }))
  })
}
