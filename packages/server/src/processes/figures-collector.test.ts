import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MetricJson } from '../metrics.js'
import { FiguresCollector } from './figures-collector.js'

test('the metrics of all processes are written as bytes, which no process has to make of a text', async () => {
  const metric = (value: number): MetricJson[] =>
    [{ name: 'taken', help: 'Taken', type: 'counter', aggregator: 'sum', values: [{ labels: { policy: 'é' }, value }] }] as never
  const collector = new FiguresCollector({ call: async () => [[0, metric(3)]] as never, has: () => true })
  const bytes = await collector.metrics(metric(1))
  assert.ok(Buffer.isBuffer(bytes))
  assert.equal(bytes.toString(), '# HELP taken Taken\n# TYPE taken counter\ntaken{policy="é"} 4\n')
})
