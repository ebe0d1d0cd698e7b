import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CellResult, FleetRun, Shape } from './cell.js'
import type { FleetContenderName } from './contenders.js'
import type { FleetResults } from './fleet-results.js'
import { fleetTables } from './fleet-tables.js'
import { fleetVerdicts } from './fleet-verdicts.js'

function run(takes: number, more: Partial<FleetRun> = {}): FleetRun {
  const latency = { timed: takes, meanNs: 100, p50Ns: 900, p99Ns: 2_000, p999Ns: 3_000_000, maxNs: 3_000_000 }
  const use = { admitted: 100, budget: 200, leasedBudget: 100, overGrant: 0, withoutStore: 0 }
  return {
    startedAt: '',
    takes,
    elapsedMs: 1_000,
    calls: 5,
    serverUs: 10,
    ...use,
    all: latency,
    admits: latency,
    denials: undefined,
    ...more,
  }
}

function cell(contender: FleetContenderName, shape: Shape, runs: readonly FleetRun[]): CellResult {
  return { cell: { contender, topology: 'cluster', shape, callers: 256, pace: 0 }, runs }
}

function results(cells: readonly CellResult[]): FleetResults {
  const machine = { cpu: '', cores: 2, memoryGiB: 1, os: '', kernel: '', node: '', go: '' }
  const effort = { runs: 2, longMs: 1, shortMs: 1 }
  return { kind: 'redis', finishedAt: '', machine, server: '', rivals: {}, effort, loadBefore: 0, loadAfter: 0, cells }
}

test('what was not measured is neither judged nor shown', () => {
  assert.deepEqual(fleetVerdicts(results([])), [])
  assert.deepEqual(fleetTables(results([])), [])
})

test('leased over exact is judged round by round', () => {
  const exact = cell('sluicegate exact', 'per_user', [run(100), run(10)])
  const [over] = fleetVerdicts(results([cell('sluicegate leased', 'per_user', [run(4_900), run(510)]), exact]))
  assert.equal(over?.measured.median, 50)
  assert.equal(over?.met, true)
})

test('one token over in one run is a target missed', () => {
  const runs = [run(100), run(100), run(100, { overGrant: 1 })]
  const verdicts = fleetVerdicts(results([cell('sluicegate leased', 'per_user', runs)]))
  assert.equal(verdicts.find(({ what }) => what.includes('over-grant'))?.met, false)
  assert.equal(verdicts.find(({ what }) => what.includes('calls'))?.met, true)
  assert.equal(verdicts.find(({ what }) => what.includes('burst - rate'))?.met, true)
})

test('a table shows figures of the median run', () => {
  const tables = fleetTables(results([cell('sluicegate leased', 'hot_key', [run(1_000), run(2_000), run(4_000)])]))
  const judged = tables.find(({ name }) => name === 'cluster-hot_key')
  assert.deepEqual(judged?.rows, [
    ['sluicegate leased', '2,000', '1,000..4,000', '0.00250', '0.050', '50.0 %', '0', '0', '900 ns', '2.00 µs', '3.00 ms'],
  ])
})
