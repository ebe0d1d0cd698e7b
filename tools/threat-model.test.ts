import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { trackedFiles } from './imports-of.js'

test('each test that the threat model names is there', () => {
  const [, model = ''] = readFileSync('SECURITY.md', 'utf8').split('\n## Threat model\n')
  const rows =
    model
      .split('\n## ')[0]
      ?.match(/^\|.*\|$/gm)
      ?.slice(2) ?? []
  const named = rows.flatMap((row) => Array.from((row.split('|').at(-2) ?? '').matchAll(/`([^`]+)`/g), ([, name = '']) => name))
  assert.ok(named.length > 20, `${named.length} tests are named`)
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const files = trackedFiles(/\.test\.ts$/)
  const absent = named.filter((name) =>
    name.startsWith('npm run ') ? scripts[name.slice('npm run '.length)] === undefined : !files.some((file) => file.includes(`/${name}.`)),
  )
  assert.deepEqual(absent, [])
})
