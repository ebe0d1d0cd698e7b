import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { RUNTIMES, suitesFor } from './runtime-suites.js'

const SOURCES = fileURLToPath(new URL('../../../sluicegate/src', import.meta.url))

for (const runtime of RUNTIMES) {
  test(`each suite that is not run on ${runtime} exists`, () => {
    const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
    const { asked, unasked } = suitesFor(
      runtime,
      files.map((name) => `/${name}`),
    )
    assert.ok(asked.length > 100, `${asked.length} files`)
    assert.ok(unasked.every((line) => /\(\d+ files?: /.test(line)))
  })
}
