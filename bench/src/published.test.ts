import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { summaryOf } from 'sluicegate-testkit/samples.js'
import { chartSvg } from './chart.js'
import { committedForm, RAW, RESULTS } from './committed-form.js'
import { committed, measuredResults, published } from './published.js'
import { claim, claimsTable } from './report.js'
import { tableMarkdown, tableText } from './table.js'

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
    lines: [{ name: 'a', points }],
  })
  assert.match(svg, /^<svg /)
  assert.match(svg, /prefers-color-scheme: dark/)
  assert.match(svg, /<title>T<\/title>/)
  assert.doesNotMatch(svg, /fill="#fff/)
})

test('a unit that all figures of a column have stands in its head', () => {
  const rows = [
    ['a', '1.5 ms', '2 ms'],
    ['b', '0', '3 ns'],
  ]
  const table = { name: 'n', head: ['', 'p50', 'p99'], rows }
  assert.equal(tableMarkdown(table), '|  | p50, ms | p99 |\n|---|---:|---:|\n| a | 1.5 | 2 ms |\n| b | 0 | 3 ns |')
})

test('targets that differ in their last part alone share a row', () => {
  const claims = [
    claim('HTTP, 16 connections', summaryOf([3]), '>= 2'),
    claim('gRPC', summaryOf([2]), '>= 2'),
    claim('HTTP, 64 connections', summaryOf([1]), '>= 2'),
  ]
  const [first, second] = claimsTable('targets', claims).rows
  assert.deepEqual(first, ['HTTP, 16/64 connections', '≥ 2', '3.00/1.00 ×', '3.00..3.00/1.00..1.00', 'met/**missed**'])
  assert.deepEqual(second, ['gRPC', '≥ 2', '2.00 ×', '2.00..2.00', 'met'])
})

test('a target is met at its bound, and missed beyond it, whatever its unit', () => {
  const met = (target: string, median: number): boolean => claim('x', summaryOf([median]), target).met
  assert.deepEqual(
    [met('<= 3 ms', 3), met('<= 3 ms', 3.1), met('>= 80 %', 80), met('>= 80 %', 79), met('<= 1/4', 0.25), met('<= 1/4', 0.26)],
    [true, false, true, false, true, false],
  )
  assert.deepEqual(
    ['<= 3 ms', '>= 80 %', '<= 1/4'].map((target) => claim('x', summaryOf([1]), target).unit),
    ['ms', '%', 'x'],
  )
})

test('what is off the page stands in the terminal', () => {
  const table = {
    name: 'n',
    head: ['a', 'b'],
    rows: [
      ['x', '1'],
      ['y', '2'],
    ],
    offPage: { columns: ['b'], rows: ([a]: readonly string[]) => a === 'y' },
  }
  assert.equal(tableMarkdown(table), '| a |\n|---|\n| x |')
  assert.equal(tableText(table), 'n\n\na  b\nx  1\ny  2\n')
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
