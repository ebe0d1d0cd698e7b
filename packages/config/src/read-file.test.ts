import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readConfig } from './read-config.js'
import { outputFault, readBytes, readText, replaceFault } from './read-file.js'

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  return folder
}

test('nothing but a regular file is opened, wherever a configuration names one', (t) => {
  const folder = folderOf(t)
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const policy = 'algorithm: gcra, limit: 5, window: 1s'
  for (const [path, reason] of [
    [folder, 'a folder'],
    [pipe, 'a pipe'],
    ['/dev/zero', 'a device'],
  ] as const) {
    const refused = new RegExp(`it is ${reason}, and a file is needed`)
    assert.throws(() => readBytes(path, 100), refused)
    const file = join(folder, 'gate.yaml')
    writeFileSync(file, `tls: { cert: "${path}", key: "${path}" }\npolicies: { api: { ${policy} } }\n`)
    assert.throws(() => readConfig(file), refused)
    writeFileSync(file, `policies: { api: { ${policy}, tier-file: "${path}", tiers: { big: { limit: 50 } } } }\n`)
    assert.throws(() => readConfig(file), refused)
  }
  assert.throws(() => readConfig(pipe), /it is a pipe/)
  execFileSync('mkfifo', [join(folder, 'other.yaml')])
  assert.throws(() => readConfig(folder), /other\.yaml:1:1: cannot be read: it is a pipe/)
  // Says that it has 0 bytes, and has some.
  assert.ok(readBytes('/proc/self/status', 100_000).length > 0)
  assert.throws(() => readBytes('/proc/self/status', 10), /it has \d+ bytes, and 10 are the most/)
})

test('a byte that is no UTF-8 is refused with its place', (t) => {
  const file = join(folderOf(t), 'gate.yaml')
  const place = (bytes: Buffer): string => {
    writeFileSync(file, bytes)
    try {
      return readText(file, 1_000_000)
    } catch (error) {
      return (error as Error).message.slice(file.length + 1)
    }
  }
  const latin = (text: string): Buffer => Buffer.from(text, 'latin1')
  assert.equal(place(Buffer.from('\ufeffgrün €😀')), 'grün €😀')
  assert.match(place(latin('a: 1\nnäme: x\n')), /^2:2: the byte 0xe4 is no UTF-8/)
  assert.match(place(latin('\xff\xfea\0')), /^1:1: the byte 0xff/)
  assert.match(place(Buffer.concat([Buffer.from('a: €\nb: 😀'), latin('\xe2\x82')])), /^2:6: the byte 0xe2/)
  assert.match(place(Buffer.concat([Buffer.from('€'.repeat(50_000)), latin('\n\xe2\x82x')])), /^2:1: the byte 0xe2/)
})

test('where a file cannot be put is known before', (t) => {
  const folder = folderOf(t)
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  writeFileSync(join(folder, 'file'), '')
  const faults = (path: string): (string | undefined)[] => [replaceFault(path), outputFault(path)]
  assert.deepEqual(faults(join(folder, 'file')), [undefined, undefined])
  assert.deepEqual(faults(join(folder, 'new')), [undefined, undefined])
  assert.deepEqual(faults(pipe), ['is a pipe, and a file is needed', undefined])
  assert.deepEqual(faults(folder), ['is a folder, and a file is needed', 'is a folder, and a file is needed'])
  assert.deepEqual(faults(join(folder, 'no', 'new')), ['is in a folder that does not exist', 'is in a folder that does not exist'])
})
