import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const CHECK = fileURLToPath(import.meta.resolve('sluicegate-testkit/adapters/native-check.js'))

test('what the entries that know no runtime do on other runtimes, they do here', () => {
  const { stdout, stderr } = spawnSync(process.execPath, [CHECK], { encoding: 'utf8', timeout: 60_000 })
  assert.equal(stderr, '')
  assert.match(stdout, /^\d+ checks hold\n$/)
})
