import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLimiter, manualClock, tokenBucket } from 'sluicegate'
import { afterTake, BURST, RATE_PER_S, untilFreeUs } from './bucket.js'
import { type Cell, type CellResult, cellName, type FleetRun, type Shape } from './cell.js'
import type { FleetContender, FleetContenderName } from './contenders.js'
import { CellFiles, cellGroups, type FleetResults, fleetReport } from './fleet-report.js'
import { closedLoop, paced } from './loads.js'
import { countsIn, sentBetween, TOPOLOGIES } from './servers.js'
import { budgetUse } from './stint.js'

test('the budget is that of all keys', () => {
  assert.deepEqual(budgetUse({ admitted: [2_000, 1_500, 500, 0], elapsedMs: 2_000 }, 100), {
    admitted: 4_000,
    budget: 8_000,
    leasedBudget: 7_800,
    overGrant: 0,
  })
})

test('what one key got too much is not made good by what another left', () => {
  assert.equal(budgetUse({ admitted: [2_003, 0], elapsedMs: 2_000 }, 100).overGrant, 3)
})

test('a token that has not come back in full is over', () => {
  assert.equal(budgetUse({ admitted: [1_001], elapsedMs: 1.9 }, 100).overGrant, 1)
  assert.equal(budgetUse({ admitted: [1_001], elapsedMs: 2 }, 100).overGrant, 0)
})

test('the bucket of the contenders decides as the library does', () => {
  const clock = manualClock()
  const limiter = createLimiter(tokenBucket({ limit: RATE_PER_S, window: '1s', burst: BURST }), { clock })
  let arrivalUs = 0
  let us = 0
  // Long waits at first, then more and more often, until most are denied.
  for (let i = 0; i < 5_000; i++) {
    us += (i * 7_919) % Math.max(1, 4_000 - i)
    clock.set(us / 1000)
    const nextUs = afterTake(arrivalUs, us)
    const { allowed, retryAfterMs } = limiter.take('key')
    assert.equal(nextUs !== undefined, allowed, `take ${i}`)
    if (nextUs === undefined) assert.equal(Math.ceil(untilFreeUs(arrivalUs, us) / 1000), retryAfterMs)
    else arrivalUs = nextUs
  }
  assert.equal(afterTake(arrivalUs, us), undefined)
})

const line = (name: string, calls: number, us: number): string =>
  `cmdstat_${name}:calls=${calls},usec=${us},usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n`

test('counts of several servers are added up', () => {
  const counts = countsIn(line('get', 2, 10) + line('set', 1, 5) + line('get', 3, 20))
  assert.deepEqual(
    [...counts],
    [
      ['get', { calls: 5, us: 30 }],
      ['set', { calls: 1, us: 5 }],
    ],
  )
})

test('a script is one call, whatever commands it runs', () => {
  const before = countsIn(line('evalsha', 10, 100) + line('get', 10, 20))
  const after = countsIn(line('evalsha', 14, 180) + line('get', 14, 28) + line('set', 4, 8) + line('eval', 1, 30))
  assert.deepEqual(sentBetween(before, after), { calls: 5, us: 110 })
})

test('a transaction is each of its commands, and its time is counted once', () => {
  const after = countsIn(line('get', 1, 2) + line('multi', 1, 1) + line('set', 1, 3) + line('pexpire', 1, 2) + line('exec', 1, 9))
  assert.deepEqual(sentBetween(new Map(), after), { calls: 5, us: 8 })
})

test('what servers and clients send to keep in touch is no call of a contender', () => {
  const after = countsIn(
    line('info', 2, 50) + line('replconf', 9, 9) + line('cluster|slots', 1, 9) + line('client|setinfo', 2, 2) + line('get', 1, 1),
  )
  assert.deepEqual(sentBetween(new Map(), after), { calls: 1, us: 1 })
})

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

const passed = (answer: unknown): boolean => answer === true

test('a caller has one question at a time, and asks about its own key', async () => {
  const open = new Map<string, number>()
  let most = 0
  const contender: FleetContender = {
    async take(key) {
      const now = (open.get(key) ?? 0) + 1
      open.set(key, now)
      most = Math.max(most, now)
      await new Promise(setImmediate)
      open.set(key, (open.get(key) as number) - 1)
      return key !== 'b'
    },
    passed,
    awaited: true,
  }
  const stint = await closedLoop(contender, ['a', 'b'], [0, 1, 1], 20)
  assert.equal(most, 2)
  assert.equal(open.get('a'), 0)
  assert.ok((stint.admitted[0] as number) > 0)
  assert.equal(stint.admitted[1], 0)
  assert.equal(stint.all?.timed, stint.takes)
  assert.equal(stint.admits?.timed, stint.admitted[0])
})

test('who decides at once does not keep others from their turn', async () => {
  let later = 0
  const contender: FleetContender = {
    take: (key) => (key === 'later' ? new Promise((resolve) => setImmediate(() => resolve(++later > 0))) : false),
    passed,
    awaited: false,
  }
  const stint = await closedLoop(contender, ['at once', 'later'], [0, 1], 20)
  assert.ok(later > 0)
  assert.equal(stint.admitted[1], later)
  assert.ok(stint.takes > later)
})

test('a rejection is a denial, an error the end of the run', async () => {
  const rejecting = (reason: unknown): FleetContender => ({ take: () => Promise.reject(reason), passed, awaited: true })
  const denied = await closedLoop(rejecting({ msBeforeNext: 1 }), ['a'], [0], 5)
  assert.ok(denied.takes > 0)
  assert.deepEqual(denied.admitted, [0])
  await assert.rejects(closedLoop(rejecting(new Error('lost')), ['a'], [0], 5), /lost/)
  await assert.rejects(paced(rejecting(new Error('lost')), ['a'], [0], 5, 1_000), /lost/)
})

test('a stall weighs on all who were due during it', async () => {
  let asked = 0
  const contender: FleetContender = {
    take() {
      if (++asked === 50) for (const untilMs = performance.now() + 60; performance.now() < untilMs; );
      return true
    },
    passed,
    awaited: false,
  }
  const stint = await paced(contender, ['a'], [0], 200, 1_000)
  assert.equal(stint.takes, 200)
  assert.deepEqual(stint.admitted, [200])
  // 60 were due meanwhile: of 200 that is more than the upper quarter, and the slowest waited for all of it.
  assert.ok((stint.all?.maxNs as number) >= 59e6)
  assert.ok((stint.all?.meanNs as number) >= 5e6, `${stint.all?.meanNs}`)
})

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

function targets(cells: readonly CellResult[]): readonly (readonly string[])[] {
  return fleetReport(results(cells)).tables.find(({ name }) => name === 'redis-targets')?.rows ?? []
}

test('what was not measured is neither judged nor shown', () => {
  const { tables, plots } = fleetReport(results([]))
  assert.deepEqual(
    tables.filter(({ name, rows }) => name !== 'redis-machine' && rows.length > 0),
    [],
  )
  assert.deepEqual(plots, {})
})

test('leased over exact is judged round by round', () => {
  const exact = cell('sluicegate exact', 'per_user', [run(100), run(10)])
  const [over] = targets([cell('sluicegate leased', 'per_user', [run(4_900), run(510)]), exact])
  assert.deepEqual(over, ['leased over exact, a key each, ops/s, cluster', '≥ 50', '50.0 ×', '49.5..50.5', 'met'])
})

test('one token over in one run is a target missed', () => {
  const runs = [run(100), run(100), run(100, { overGrant: 1 })]
  const rows = targets([cell('sluicegate leased', 'per_user', runs)])
  const metOf = (part: string): string | undefined => rows.find(([what]) => what?.includes(part))?.at(-1)
  assert.deepEqual(['over-grant', 'calls', 'burst - rate'].map(metOf), ['**missed**', 'met', 'met'])
})

test('a table shows figures of the median run', () => {
  const { tables } = fleetReport(results([cell('sluicegate leased', 'hot_key', [run(1_000), run(2_000), run(4_000)])]))
  const judged = tables.find(({ name }) => name === 'cluster-hot_key')
  assert.deepEqual(judged?.rows, [
    ['sluicegate leased', '2,000', '1,000..4,000', '0.00250', '0.050', '50.0 %', '0', '0', '900 ns', '2.00 µs', '3.00 ms'],
  ])
})
