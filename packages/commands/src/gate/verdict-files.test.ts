import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { VerdictInForce } from 'sluicegate/gate'
import { denyList, nginxGeo, nginxMap, runCommand, VerdictFile } from './verdict-files.js'

function given(key: string, verdict: VerdictInForce['verdict'] = 'block'): VerdictInForce {
  return { key, verdict, count: 1, sinceMs: 0, untilMs: 1 }
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'sluicegate-files-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

test('a map has a line for each key, of keys that nginx cannot tell apart the most severe verdict, and none that it would refuse', () => {
  const { text, leftOut } = nginxMap([
    given('192.0.2.7'),
    given('Key', 'flag'),
    given('KEY', 'throttle'),
    given('key', 'flag'),
    given('quo"te; }'),
    given('x'.repeat(201)),
    given('line\nfeed'),
    given('tränen'),
    given('back\\slash'),
  ])
  assert.deepEqual(text.split('\n').slice(1, -1), ['"\\\\192.0.2.7" block;', '"\\\\key" throttle;', '"\\\\quo\\"te; }" block;'])
  assert.equal(leftOut, 4)
})

test('a geo has the addresses and networks, and nothing that nginx would refuse', () => {
  const keys = [
    '192.0.2.7',
    '2001:db8:0:4200::/56',
    '203.0.113.0/24',
    'alice',
    '1.2.3.4/99',
    '1.2.3.4;',
    'fe80::1%eth0',
    '1.2.3.4/24 block; x',
  ]
  const { text, leftOut } = nginxGeo(keys.map((key) => given(key)))
  assert.deepEqual(text.split('\n').slice(1, -1), ['192.0.2.7 block;', '2001:db8:0:4200::/56 block;', '203.0.113.0/24 block;'])
  assert.equal(leftOut, 5)
})

test('a deny list has the blocked keys, one a line', () => {
  assert.deepEqual(denyList([given('b'), given('c', 'throttle'), given('a'), given('d\ne')]), { text: 'a\nb\n', leftOut: 1 })
})

test('a file is written only when it changes, whole, and leaves nothing beside it', async (t) => {
  const at = folder(t)
  const file = new VerdictFile(join(at, 'deny'), denyList)
  assert.equal(await file.write([]), true)
  assert.equal(await file.write([given('a')]), true)
  assert.equal(await file.write([given('a'), given('b', 'flag')]), false)
  assert.equal(readFileSync(file.path, 'utf8'), 'a\n')
  assert.deepEqual(readdirSync(at), ['deny'])
  mkdirSync(join(at, 'folder'))
  await assert.rejects(new VerdictFile(join(at, 'folder'), denyList).write([]), /EISDIR|directory|is a folder/)
  assert.deepEqual(readdirSync(at).sort(), ['deny', 'folder'])
})

test('a command that fails says how', async () => {
  await runCommand('true')
  await assert.rejects(runCommand('echo no such process >&2; exit 3'), /ended with 3: no such process/)
})
