import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Cell, cellName, type FleetRun } from './cell.js'
import { CellFiles, cellGroups } from './cells.js'
import { TOPOLOGIES } from './servers.js'

test('no two cells share a file', () => {
  const names = TOPOLOGIES.flatMap((topology) => cellGroups(topology).flat()).map(cellName)
  assert.equal(new Set(names).size, names.length)
  assert.ok(names.every((name) => /^[\w.-]+$/.test(name)))
})

test('cells that are measured side by side differ only in who decides', () => {
  for (const cells of cellGroups('cluster')) {
    assert.equal(new Set(cells.map(({ contender, ...setting }) => JSON.stringify(setting))).size, 1)
  }
})

test('what was measured before an interruption is still there', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-cells-'))
  try {
    const cell: Cell = { contender: 'batch borrow', topology: 'cluster', shape: 'hot_key', callers: 16, pace: 0 }
    const run = (takes: number): FleetRun => ({ takes }) as FleetRun
    const resultsFile = join(folder, 'results.json')
    const files = (): CellFiles => new CellFiles(join(folder, 'cells'), resultsFile)
    assert.deepEqual(files().read(cell), { cell, runs: [] })
    writeFileSync(resultsFile, JSON.stringify({ cells: [{ cell, runs: [run(1)] }] }))
    files().add(cell, run(2))
    assert.deepEqual(files().read(cell).runs, [run(1), run(2)])
    assert.deepEqual(files().read({ ...cell, callers: 64 }).runs, [])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
