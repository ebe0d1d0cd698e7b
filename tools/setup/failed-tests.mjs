import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { Refusal, ROOT } from './root.mjs'

/** `.ci/run` keeps its record apart. */
const LAST_RUN = process.env.SLUICEGATE_FAILED_TESTS ?? join(ROOT, '.cache/failed-tests.json')
/** Of this process: a second run at the same time does not write into it. */
const THIS_RUN = join(ROOT, `.cache/failed-tests-${process.pid}.json`)
/** A message says what, where and the first frames; the whole of it stands with the test. */
const LINES_OF_A_MESSAGE = 12
/** How many of the slowest files are shown. */
const SLOWEST = 12

/** Options for `node --test`: the output that it would give without them, and a record of what failed. */
export function recordingOptions() {
  mkdirSync(dirname(THIS_RUN), { recursive: true })
  const shown = process.stdout.isTTY ? 'spec' : 'tap'
  const recorder = join(ROOT, 'tools/setup/failed-tests-reporter.mjs')
  return [
    `--test-reporter=${shown}`,
    '--test-reporter-destination=stdout',
    `--test-reporter=${recorder}`,
    `--test-reporter-destination=${THIS_RUN}`,
  ]
}

/**
 * Prints what failed once more: in thousands of tests the first message is far away. The last line counts. On CI also where the time went:
 * the tests of each file added up, with whatever ran beside them.
 */
export function printSummary() {
  if (existsSync(THIS_RUN)) renameSync(THIS_RUN, LAST_RUN)
  const last = lastRun()
  if (last === undefined) return
  if (process.env.CI) {
    const slowest = Object.entries(last.seconds).sort(([, a], [, b]) => b - a)
    console.log(`\nSlowest of ${slowest.length} files:`)
    for (const [file, seconds] of slowest.slice(0, SLOWEST)) console.log(`${seconds.toFixed(1).padStart(8)} s  ${relative(ROOT, file)}`)
  }
  if (last.failures.length === 0) return
  console.log(`\n${last.failures.length} failed:`)
  for (const { name, file, message } of last.failures) {
    const lines = message.split('\n').slice(0, LINES_OF_A_MESSAGE)
    console.log(`\n- ${name}\n  ${relative(ROOT, file ?? '')}\n${lines.map((line) => `    ${line}`).join('\n')}`)
  }
  console.log('\nRun their files again: npm test -- --failed')
  console.log(`${last.counts.pass ?? 0} passed, ${(last.counts.fail ?? 0) + (last.counts.cancelled ?? 0)} failed`)
}

/** The compiled files whose tests failed in the last run, relative to the root. */
export function failedFiles() {
  const files = lastRun()?.files ?? []
  if (files.length === 0) throw new Refusal('No test of the last run failed: run npm test')
  return files.map((file) => relative(ROOT, resolve(ROOT, file)))
}

function lastRun() {
  const text = existsSync(LAST_RUN) ? readFileSync(LAST_RUN, 'utf8') : ''
  return text === '' ? undefined : JSON.parse(text)
}
