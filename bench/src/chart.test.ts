import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chartSvg } from './chart.js'

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
