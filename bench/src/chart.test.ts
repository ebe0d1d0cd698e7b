import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { VERSUS } from './rivals.js'

// The library that draws is installed with the rivals, on demand: without it there is nothing to draw with.
if (existsSync(`${VERSUS}node_modules/echarts`)) {
  test('a chart has no background of its own and a dress for dark pages', async () => {
    const { chartSvg } = await import('./chart.js')
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
}
