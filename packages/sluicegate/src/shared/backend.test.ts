import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

const sources = new URL('../../src/', import.meta.url)

function sorted(names: Iterable<string | undefined>): readonly (string | undefined)[] {
  return [...new Set(names)].sort()
}

test('the table of operations lists the verbs that there are', () => {
  const text = readFileSync(new URL('shared/backend.ts', sources), 'utf8')
  const rows = [...text.matchAll(/^ \* \| (`[^|]*`) \|/gm)].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, verb]) => verb),
  )
  const [, union = ''] = /export type Operation =([\s\S]*?)\n\n/.exec(text) ?? []
  const verbs = [...union.matchAll(/verb: ((?:'\w+'(?: \| )?)+)/g)].flatMap(([, list = '']) =>
    [...list.matchAll(/'(\w+)'/g)].map(([, verb]) => verb),
  )
  assert.ok(verbs.length > 10)
  assert.deepEqual(sorted(rows), sorted(verbs))
})

test('the files that the declarations of WebAssembly name are there', () => {
  const [line = ''] = readFileSync(new URL('webassembly.d.ts', sources), 'utf8').split('\n')
  const names = [...line.matchAll(/[\w-]+\.ts/g)].map(([name]) => name)
  assert.equal(names.length, 2)
  for (const name of names) assert.ok(existsSync(new URL(`memory/${name}`, sources)), name)
})
