import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { chartSvg } from './chart.js'
import { committedForm, RAW, RESULTS } from './committed-form.js'
import { filled, table, tableMarkdown, targetsTable } from './markdown.js'
import { committed, measuredResults, published } from './published.js'
import { summaryOf } from './samples.js'

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

test('a chart has no background of its own and a dress for dark pages', () => {
  const points = [1, 10].map((y) => ({ x: String(y), y, low: y * 0.9, high: y * 1.1 }))
  const svg = chartSvg({
    title: 'T',
    subtitle: 'S',
    xName: 'x',
    yName: 'y',
    yScale: 'log',
    lines: [{ name: 'a', color: '#2f81f7', points }],
  })
  assert.match(svg, /^<svg /)
  assert.match(svg, /prefers-color-scheme: dark/)
  assert.match(svg, /<title>T<\/title>/)
  assert.doesNotMatch(svg, /fill="#fff/)
})

test('a part replaces what stood in its place, and nothing else', () => {
  const document = 'before\n<!-- bench:a -->\nold\n<!-- /bench -->\nbetween\n<!-- bench:b -->\nkept\n<!-- /bench -->\nafter\n'
  const expected = 'before\n<!-- bench:a -->\n\nnew\n\n<!-- /bench -->\nbetween\n<!-- bench:b -->\nkept\n<!-- /bench -->\nafter\n'
  assert.equal(filled(document, new Map([['a', 'new']])), expected)
})

test('filling twice with the same part changes nothing', () => {
  const parts = new Map([['a', '| x |']])
  const once = filled('<!-- bench:a --><!-- /bench -->', parts)
  assert.equal(filled(once, parts), once)
})

test('a part of a line stays in its line', () => {
  const row = '| service | <!-- bench-inline:a -->old<!-- /bench --> |\n'
  assert.equal(filled(row, new Map([['a', 'new']])), '| service | <!-- bench-inline:a -->new<!-- /bench --> |\n')
})

test('a unit that all figures of a column have stands in its head', () => {
  const rows = [
    ['a', '1.5 ms', '2 ms'],
    ['b', '0', '3 ns'],
  ]
  assert.equal(table(['', 'p50', 'p99'], rows), '|  | p50, ms | p99 |\n|---|---:|---:|\n| a | 1.5 | 2 ms |\n| b | 0 | 3 ns |')
})

test('targets that differ in their last part alone share a row', () => {
  const verdict = (what: string, median: number) => ({
    what,
    target: '>= 2',
    measured: summaryOf([median]),
    unit: 'x' as const,
    met: median >= 2,
  })
  const verdicts = [verdict('HTTP, 16 connections', 3), verdict('gRPC', 2), verdict('HTTP, 64 connections', 1)]
  const [, , first = '', second = ''] = targetsTable(verdicts).split('\n')
  assert.match(first, /^\| HTTP, 16\/64 connections \| ≥ 2 \| 3\.00\/1\.00 × \| .* \| met\/\*\*missed\*\* \|$/)
  assert.match(second, /^\| gRPC \| ≥ 2 \| 2\.00 × \| .* \| met \|$/)
})

test('a table has its title above it', () => {
  assert.equal(tableMarkdown({ name: 'n', title: 'T', head: ['', 'b'], rows: [['x', '1']] }), '**T**\n\n|  | b |\n|---|---:|\n| x | 1 |')
})

test('of repeated runs medians and quartiles are committed, with the machine and the command, a row a line', () => {
  const results = {
    kind: 'server',
    machine: { cpu: 'a', cores: 2 },
    http: [
      {
        subject: 'take',
        runs: [1, 3, 2].map((n) => ({
          startedAt: 'now',
          perSecond: n,
          latencyMs: { p50: n / 3 },
          over: 0,
          denied: n > 1 ? { p50: n } : null,
        })),
      },
      { subject: 'rows', runs: [{ name: 'x', ns: [1, 2, 3, 4] }] },
    ],
    answers: [
      { measurements: [{ subject: 'one', ns: { min: 0, lowerQuartile: 1, median: 2, upperQuartile: 3, max: 9 }, samples: [1, 2, 3] }] },
    ],
  }
  assert.equal(
    committedForm(results, 'npm run bench:server'),
    `{
 "command": "npm run bench:server",
 "kind": "server",
 "machine": {"cpu":"a","cores":2},
 "http": [
  {"subject":"take","runs":{"perSecond":[1.5,2,2.5],"latencyMs":{"p50":[0.5,0.6667,0.8333]},"over":0,"denied":{"p50":[2.25,2.5,2.75]}}},
  {"subject":"rows","runs":[{"name":"x","ns":[1.75,2.5,3.25]}]}
 ],
 "answers": [
  {"measurements":[{"subject":"one","ns":[1,2,3]}]}
 ]
}
`,
  )
})
