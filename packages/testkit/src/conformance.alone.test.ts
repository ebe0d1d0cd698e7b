import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { IS_LONG_RUN } from './run-length.js'

const PROGRAM = fileURLToPath(new URL('./faulty-limiter.js', import.meta.url))
// Without the variable that tells a child of the test runner to report to it.
const { NODE_TEST_CONTEXT: _context, ...ENV } = process.env

const isSound = (fault: string): boolean => fault.startsWith('none, ')
const ALL = await names()
const SOUND = ALL.filter(isSound)
const FAULTS = ALL.filter((fault) => !isSound(fault))

/** What the suite says of a limiter: whether all its tests passed, undefined where it did not come to its end; and the lines of them. */
interface Verdict {
  isGood: boolean | undefined
  readonly lines: string[]
}

/**
 * A process costs as much as the tests of a fault: each runs several, one after the other. The last is a sound limiter, which does not pass
 * where a fault before it has ended the process. A short run has one process with a few faults.
 */
const batches = (IS_LONG_RUN ? SOUND : SOUND.slice(-1)).map((sound, i, { length }) => [
  ...FAULTS.filter((_, at) => (IS_LONG_RUN ? at % length === i : at % 20 === 0)),
  sound,
])

for (const batch of batches) {
  let ran: Promise<ReadonlyMap<string, Verdict>> | undefined
  for (const fault of batch) {
    test(`the conformance suite ${isSound(fault) ? `passes where there is ${fault}` : `notices ${fault}`}`, async () => {
      ran ??= run(batch)
      const { isGood, lines } = (await ran).get(fault) ?? assert.fail('not run')
      assert.equal(isGood, isSound(fault), lines.slice(-30).join('\n'))
    })
  }
}

test('there are faults to notice', () => {
  assert.ok(FAULTS.length > 30)
})

/** Once a test of a fault has failed, the program is told to leave its others. */
async function run(faults: readonly string[]): Promise<ReadonlyMap<string, Verdict>> {
  const child = spawn(process.execPath, ['--test-reporter=tap', PROGRAM, ...faults], {
    env: ENV,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const verdicts = new Map<string, Verdict>()
  let current = ''
  for await (const line of createInterface({ input: child.stdout ?? assert.fail() })) {
    const [, begun] = /^# Subtest: (.*)$/.exec(line) ?? []
    if (begun !== undefined) {
      current = begun
      verdicts.set(current, { isGood: undefined, lines: [] })
    }
    const verdict = verdicts.get(current)
    if (verdict === undefined || verdict.isGood === false) continue
    verdict.lines.push(line)
    if (line.startsWith('ok ')) verdict.isGood = true
    if (!/^ *not ok /.test(line)) continue
    verdict.isGood = false
    if (child.connected) child.send(current)
  }
  return verdicts
}

async function names(): Promise<readonly string[]> {
  const child = spawn(process.execPath, [PROGRAM], { env: ENV, stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  for await (const chunk of child.stdout) text += chunk
  return JSON.parse(text)
}
