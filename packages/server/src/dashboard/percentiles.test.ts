import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Latency } from '../engine/latency.js'
import { percentilesBetween } from './sampler.js'

test('percentiles are of the observations since the state before, within their bucket', () => {
  const latency = new Latency()
  for (let i = 0; i < 1_000; i++) latency.observe(5e-3)
  const before = latency.buckets.slice()
  assert.equal(percentilesBetween(before, latency.buckets), undefined)
  for (let i = 0; i < 990; i++) latency.observe(2e-6)
  for (let i = 0; i < 10; i++) latency.observe(2e-4)
  const { p50, p90, p99, p999 } = percentilesBetween(before, latency.buckets) ?? assert.fail()
  assert.ok(p50 > 1 && p50 < p90 && p90 < p99 && p99 <= 2.5, `${p50} ${p90} ${p99}`)
  assert.ok(p999 > 100 && p999 <= 250, String(p999))
})

test('what took longer than the last bound counts as that bound', () => {
  const latency = new Latency()
  latency.observe(3)
  assert.equal(percentilesBetween([], latency.buckets)?.p50, 500_000)
})
