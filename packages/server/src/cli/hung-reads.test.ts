import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'

const IMPORTS = `
  import { endOnHungReads } from '${new URL('./hung-reads.js', import.meta.url).href}'
  import { readStep } from '${import.meta.resolve('sluicegate-config/read-steps.js')}'
  const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
`

async function ran(code: string): Promise<{ readonly signal: NodeJS.Signals | null; readonly err: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', IMPORTS + code], { stdio: ['ignore', 'ignore', 'pipe'] })
  let err = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const [, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { signal, err }
}

test('a file that the system does not answer ends the start with its name; slow steps, and work between them, do not', async () => {
  // A step that stands still, as in a folder over a network that is gone.
  const hung = await ran(`endOnHungReads(300); readStep('/mnt/gone/limits.yaml', () => pause(60_000))`)
  assert.equal(hung.signal, 'SIGKILL')
  assert.equal(hung.err, '/mnt/gone/limits.yaml: cannot be read: no answer within 0.3 s; does its disk or network answer?\n')
  const slow = await ran(
    `const end = endOnHungReads(1500); for (let i = 0; i < 4; i++) readStep('a', () => pause(500)); pause(1800); end()`,
  )
  assert.deepEqual(slow, { signal: null, err: '' })
})
