import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { RAW, RESULTS } from './bench-command.js'
import { committed, measuredResults, published } from './published.js'

const textOf = (path: string): string => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8')

test('tables and plots of results that are committed whole are those of the docs', () => {
  const made = published(
    measuredResults().filter((file) => !file.startsWith(RAW)),
    textOf,
  )
  assert.ok(made.size > 0)
  for (const [path, text] of made) assert.ok(textOf(path) === text, `docs/${path} is not what npm run plots makes`)
})

test('each committed file of results says its machine and the command that measures it again', () => {
  for (const name of readdirSync(RESULTS).filter((each) => each.endsWith('.json') && each !== 'postgres.json')) {
    const { command, machine, where } = JSON.parse(readFileSync(`${RESULTS}${name}`, 'utf8'))
    assert.match(command, /^npm run /, name)
    assert.ok(machine?.cpu ?? where, name)
  }
})

test('the committed form is made of the raw results alone', (t) => {
  const file = `${RAW}test/workers.json`
  mkdirSync(`${RAW}test`, { recursive: true })
  t.after(() => rmSync(`${RAW}test`, { recursive: true }))
  writeFileSync(file, JSON.stringify({ kind: 'workers', rows: [{ name: 'a', perSecond: [1, 2, 3] }] }))
  const [[name, text] = [], ...others] = [...committed([file, `${RESULTS}postgres.json`])]
  assert.deepEqual([name, others], ['workers.json', []])
  assert.deepEqual(JSON.parse(text ?? ''), {
    command: 'npm run bench:workers',
    kind: 'workers',
    rows: [{ name: 'a', perSecond: [1.5, 2, 2.5] }],
  })
})
