import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MiddlewareResults, middlewareVerdicts } from './middleware-results.js'
import type { MiddlewareSetting } from './middleware-settings.js'
import { middlewareTables } from './middleware-tables.js'
import { checkedRun, type SettingRuns, type SideRun } from './side-runs.js'

const SETTING: MiddlewareSetting = { framework: 'express', options: 'same', outcome: 'allow', clients: 'one' }
const DENIED: MiddlewareSetting = { ...SETTING, outcome: 'deny' }
const ONE = { requests: 1, allowed: 1 }

/** What each side took, for each run. */
type Triple = readonly [unlimited: number, sluicegate: number, rival: number]

function timed(setting: MiddlewareSetting, runs: readonly Triple[]): SettingRuns<{ ns: number } & typeof ONE> {
  const found = (ns: number) => ({ ns, ...ONE })
  return {
    setting,
    runs: runs.map(([unlimited, ours, theirs]) => ({ unlimited: found(unlimited), sluicegate: found(ours), rival: found(theirs) })),
  }
}

function results(found: Partial<MiddlewareResults>): MiddlewareResults {
  const machine = { cpu: '', cores: 2, memoryGiB: 1, os: '', kernel: '', node: '', go: '' }
  const effort = { added: { lives: 1, repeats: 3 }, allocationRuns: 1, sockets: { runs: 2, ms: 1, warmUpMs: 1 } }
  const about = { kind: 'middleware', startedAt: '', machine, rivals: {}, effort, loadBefore: 0, loadAfter: 0 } as const
  return { ...about, added: [], allocations: [], sockets: [], ...found }
}

function rows(found: Partial<MiddlewareResults>, name: string): readonly (readonly string[])[] {
  return middlewareTables(results(found)).find((table) => table.name === name)?.rows ?? []
}

test('what was not measured is neither judged nor shown', () => {
  assert.deepEqual(middlewareTables(results({})), [])
  assert.deepEqual(middlewareVerdicts(results({})), [])
})

test('what is added is judged run by run', () => {
  // In the second run the whole machine was slow.
  const found = timed(SETTING, [
    [5_000, 5_300, 6_000],
    [50_000, 53_000, 60_000],
    [5_000, 5_400, 6_000],
  ])
  const [verdict] = middlewareVerdicts(results({ added: [found] }))
  assert.equal(verdict?.measured.median, 0.3)
  assert.equal(verdict?.met, true)
  const [row] = rows({ added: [found] }, 'middleware-express-allow')
  assert.deepEqual([row?.[0], row?.[1], row?.[3]], ['allow, one address', '400', '1000'])
  assert.deepEqual([row?.[5], row?.[7]], ['0.30', '5000'])
})

test('a third is enough, and more is not', () => {
  const verdict = (ours: number) => middlewareVerdicts(results({ added: [timed(SETTING, [[0, ours, 3_000]])] }))[0]?.met
  assert.deepEqual([verdict(1_000), verdict(1_001)], [true, false])
})

test('a denial is reported whole, because it may cost less than what the app answers', () => {
  const added = [timed(DENIED, [[5_000, 4_000, 8_000]])]
  const [row] = rows({ added }, 'middleware-express-deny')
  assert.deepEqual([row?.[1], row?.[3], row?.[5], row?.[7]], ['4000', '8000', '0.50', '5000'])
  assert.deepEqual(middlewareVerdicts(results({ added })), [])
})

test('allocations are the difference to the app alone', () => {
  const run = (ours: number) => ({
    unlimited: { bytes: 4_000, ...ONE },
    sluicegate: { bytes: ours, ...ONE },
    rival: { bytes: 6_200, ...ONE },
  })
  const allocations = [{ setting: SETTING, runs: [run(4_500), run(4_600)] }]
  const [row] = rows({ allocations }, 'middleware-allocations')
  assert.deepEqual(row?.slice(1), ['550', '500..600', '2,200', '2,200..2,200', '0.25', '4,000'])
})

test('over sockets each side is compared with the unlimited app in the same round', () => {
  const load = (requests: number) => ({ requests, allowed: requests, elapsedMs: 1_000, cpuUs: 1_000_000 })
  const run = (bare: number, ours: number) => ({ unlimited: load(bare), sluicegate: load(ours), rival: load(bare / 2) })
  const sockets = [{ setting: SETTING, runs: [run(10_000, 8_000), run(1_000, 800)] }]
  const [row] = rows({ sockets }, 'middleware-sockets')
  assert.deepEqual(row?.slice(0, 5), ['express: allow, one address', '5500', '4400', '2750', '138'])
})

test('a side that answered otherwise than it should measured something else', () => {
  const run = (unlimited: number, ours: number): SideRun<typeof ONE> => {
    const found = (allowed: number) => ({ requests: 10, allowed })
    return { unlimited: found(unlimited), sluicegate: found(ours), rival: found(ours) }
  }
  assert.deepEqual(checkedRun(SETTING, run(10, 10)), run(10, 10))
  assert.deepEqual(checkedRun(DENIED, run(10, 0)), run(10, 0))
  assert.throws(() => checkedRun(SETTING, run(10, 9)), /sluicegate: 9 of 10/)
  assert.throws(() => checkedRun(DENIED, run(10, 1)), /sluicegate: 1 of 10/)
  assert.throws(() => checkedRun(DENIED, run(0, 0)), /unlimited: 0 of 10/)
})
